// rnicd_door_bench: "storm" measures what a storm of connections costs others, "cost" what a door costs. --spread
// leaves it to the kernel on which processors all run.
// With --role=storm the program is one process of the storm.
#include "tests/bench/door_bench.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

rnicd::bench::StormOptions StormOptionsOf(const std::vector<std::string_view>& arguments) {
  return {.spread = std::ranges::find(arguments, "--spread") != arguments.end()};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const std::string_view part = arguments.empty() ? "" : arguments[0];
  if (part == "--role=storm" && arguments.size() > 2) {
    rnicd::bench::Storm(std::string(arguments[1]), arguments[2] == "blocking", StormOptionsOf(arguments));
  }
  if (part == "storm") {
    rnicd::bench::PrintStorms(StormOptionsOf(arguments));
  } else if (part == "cost") {
    rnicd::bench::PrintCosts();
  } else {
    std::fprintf(stderr, "usage: rnicd_door_bench storm [--spread] | cost\n");
    return 2;
  }
  return 0;
}
