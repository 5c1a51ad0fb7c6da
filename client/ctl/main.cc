#include <iostream>
#include <string>
#include <vector>

#include "client/ctl/commands.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return rnicd::ctl::RunRnicctl(arguments, std::cout, std::cerr);
}
