#include <windows.h>
// Behind windows.h, whose types it uses.
#include <winternl.h>

#include <array>

#include "base/system/this_process.h"

// The result of GetVersionEx depends on the program's manifest. Source: the Windows Driver Kit, RtlGetVersion.
extern "C" NTSTATUS NTAPI RtlGetVersion(OSVERSIONINFOW* version);

namespace rnicd {

int32_t ProcessId() { return static_cast<int32_t>(GetCurrentProcessId()); }

uint64_t MachineMemoryBytes() {
  MEMORYSTATUSEX memory = {.dwLength = sizeof(memory)};
  return GlobalMemoryStatusEx(&memory) != 0 ? memory.ullTotalPhys : 0;
}

std::string HostName() {
  std::array<char, 256> name{};
  DWORD bytes = name.size();
  return GetComputerNameExA(ComputerNameDnsHostname, name.data(), &bytes) != 0 ? name.data() : "";
}

std::string KernelRelease() {
  OSVERSIONINFOW version = {.dwOSVersionInfoSize = sizeof(version)};
  (void)RtlGetVersion(&version);
  return std::to_string(version.dwMajorVersion) + "." + std::to_string(version.dwMinorVersion) + "." +
         std::to_string(version.dwBuildNumber);
}

}  // namespace rnicd
