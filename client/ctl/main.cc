#include <iostream>
#include <string>
#include <vector>

#include "base/system/process_start.h"
#include "client/ctl/commands.h"

int main(int argc, char** argv) {
  rnicd::PrepareProcess();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return rnicd::ctl::RunRnicctl(arguments, std::cout, std::cerr);
}
