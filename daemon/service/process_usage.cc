#include "daemon/service/process_usage.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace rnicd::service {
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

}  // namespace

ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  // Reading the folder opens one descriptor more.
  const uint64_t fds = CountEntries("/proc/self/fd");
  usage.open_fds = fds > 0 ? fds - 1 : 0;
  usage.threads = CountEntries("/proc/self/task");
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  usage.resident_bytes = resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return usage;
}

}  // namespace rnicd::service
