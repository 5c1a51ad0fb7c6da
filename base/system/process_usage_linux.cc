#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/system/process_usage.h"

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

// Fields of /proc/self/stat, numbered from 1; empty where it cannot be read. The second is the name in parentheses, and
// empty here.
std::vector<std::string> ReadStat() {
  std::string line;
  std::ifstream file("/proc/self/stat");
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) {
    return {};
  }
  std::vector<std::string> fields(3);
  std::istringstream rest(line.substr(name_end + 1));
  for (std::string field; rest >> field;) {
    fields.push_back(field);
  }
  return fields;
}

constexpr size_t kStartTicks = 22;
constexpr size_t kVirtualBytes = 23;

double SecondsOf(const std::string& ticks) {
  return std::strtod(ticks.c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
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
  usage.cpu_seconds = ReadProcessCpu();
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  usage.resident_bytes = resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (const std::vector<std::string> stat = ReadStat(); stat.size() > kVirtualBytes) {
    usage.virtual_bytes = std::strtoull(stat[kVirtualBytes].c_str(), nullptr, 10);
  }
  return usage;
}

double ReadProcessCpu() { return SecondsOf(CLOCK_PROCESS_CPUTIME_ID); }

double ReadProcessStart() {
  const std::vector<std::string> stat = ReadStat();
  if (stat.size() <= kStartTicks) {
    return 0;
  }
  // Ticks since boot, which is also the epoch of the boot clock.
  return SecondsOf(CLOCK_REALTIME) - SecondsOf(CLOCK_BOOTTIME) + SecondsOf(stat[kStartTicks]);
}

}  // namespace rnicd
