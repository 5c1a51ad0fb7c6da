#include "tests/support/process/processor_time.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace rnicd::test {

std::chrono::milliseconds ProcessorTimeOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  // Behind the name of the program, which may hold anything, 11 fields stand before the two.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int field = 0; field < 11; ++field) {
    fields >> skipped;
  }
  long user = 0;
  long system = 0;
  fields >> user >> system;
  return std::chrono::milliseconds((user + system) * 1000 / sysconf(_SC_CLK_TCK));
}

}  // namespace rnicd::test
