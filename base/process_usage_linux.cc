#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "base/process_usage.h"

namespace rnicd {
namespace {

uint64_t CountEntries(const char* directory) {
  std::error_code error;
  uint64_t count = 0;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    ++count;
  }
  return count;
}

double SecondsOf(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Fields of /proc/self/stat are numbered from 1; the third follows the name in parentheses.
void ReadStat(ProcessUsage& usage) {
  constexpr int kFirst = 3;
  constexpr int kUserTicks = 14;
  constexpr int kSystemTicks = 15;
  constexpr int kStartTicks = 22;
  constexpr int kVirtualBytes = 23;
  std::string line;
  std::ifstream file("/proc/self/stat");
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) {
    return;
  }
  std::istringstream fields(line.substr(name_end + 1));
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  std::string field;
  for (int number = kFirst; fields >> field && number <= kVirtualBytes; ++number) {
    if (number == kUserTicks || number == kSystemTicks) {
      usage.cpu_seconds += std::strtod(field.c_str(), nullptr) / ticks_per_second;
    } else if (number == kStartTicks) {
      // Ticks since boot, which is also the epoch of the boot clock.
      usage.started_seconds = SecondsOf(CLOCK_REALTIME) - SecondsOf(CLOCK_BOOTTIME) +
                              std::strtod(field.c_str(), nullptr) / ticks_per_second;
    } else if (number == kVirtualBytes) {
      usage.virtual_bytes = std::strtoull(field.c_str(), nullptr, 10);
    }
  }
}

}  // namespace

// Source: proc(5), getrlimit(2).
ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  // Reading the directory opens one more descriptor.
  const uint64_t fds = CountEntries("/proc/self/fd");
  usage.open_fds = fds > 0 ? fds - 1 : 0;
  usage.threads = CountEntries("/proc/self/task");
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    usage.max_fds = limit.rlim_cur;
  }
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  usage.resident_bytes = resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  ReadStat(usage);
  return usage;
}

}  // namespace rnicd
