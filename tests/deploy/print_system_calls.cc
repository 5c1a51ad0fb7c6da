// Prints the names of all system calls that the daemon's own filter allows, one per line.
#include <cstdio>

#include "daemon/sandbox/system_calls.h"

int main() {
  for (const auto& group : rnicd::sandbox::AllowedCalls()) {
    for (const char* const call : group.calls) {
      std::puts(call);
    }
  }
  for (const auto& rule : rnicd::sandbox::AllowedByArguments(1)) {
    std::puts(rule.call);
  }
}
