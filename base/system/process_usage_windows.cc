#include <windows.h>
// Behind windows.h, whose types they use.
#include <tlhelp32.h>
#include <winternl.h>

#include "base/files/unique_fd.h"
#include "base/system/process_usage.h"

namespace rnicd {
namespace {

// Handles that Windows lets a process have; no call reports it.
constexpr uint64_t kHandlesMax = (uint64_t{1} << 24) - (uint64_t{1} << 16);
// A FILETIME counts 100 nanoseconds since 1601.
constexpr double kTicksPerSecond = 1e7;
constexpr double kSecondsFrom1601To1970 = 11'644'473'600.0;

double SecondsOf(const FILETIME& time) {
  const uint64_t ticks = (uint64_t{time.dwHighDateTime} << 32) | time.dwLowDateTime;
  return static_cast<double>(ticks) / kTicksPerSecond;
}

// A snapshot has the threads of all processes.
uint64_t CountThreads() {
  const UniqueFd snapshot(HandleToLong(CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0)));
  THREADENTRY32 entry = {.dwSize = sizeof(entry)};
  uint64_t count = 0;
  for (BOOL more = Thread32First(LongToHandle(snapshot.get()), &entry); more != 0;
       more = Thread32Next(LongToHandle(snapshot.get()), &entry)) {
    count += entry.th32OwnerProcessID == GetCurrentProcessId() ? 1 : 0;
  }
  return count;
}

struct Times {
  double started_seconds = 0;
  double cpu_seconds = 0;
};

Times ReadTimes() {
  FILETIME started;
  FILETIME exited;
  FILETIME kernel;
  FILETIME user;
  if (GetProcessTimes(GetCurrentProcess(), &started, &exited, &kernel, &user) == 0) {
    return {};
  }
  return {.started_seconds = SecondsOf(started) - kSecondsFrom1601To1970,
          .cpu_seconds = SecondsOf(kernel) + SecondsOf(user)};
}

}  // namespace

// Source: GetProcessHandleCount, NtQueryInformationProcess, GetProcessTimes, CreateToolhelp32Snapshot.
ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  DWORD handles = 0;
  if (GetProcessHandleCount(GetCurrentProcess(), &handles) != 0) {
    usage.open_fds = handles;
  }
  usage.max_fds = kHandlesMax;
  usage.threads = CountThreads();
  VM_COUNTERS memory = {};
  if (NT_SUCCESS(NtQueryInformationProcess(GetCurrentProcess(), ProcessVmCounters, &memory, sizeof(memory), nullptr))) {
    usage.resident_bytes = memory.WorkingSetSize;
    usage.virtual_bytes = memory.VirtualSize;
  }
  usage.cpu_seconds = ReadTimes().cpu_seconds;
  return usage;
}

double ReadProcessCpu() { return ReadTimes().cpu_seconds; }

double ReadProcessStart() { return ReadTimes().started_seconds; }

}  // namespace rnicd
