#include <windows.h>

#include <string>

#include "base/status.h"
#include "base/windows_status.h"

namespace rnicd {
namespace {

ErrorReason ReasonOf(uint32_t error) {
  switch (error) {
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT:
    case ERROR_NO_SYSTEM_RESOURCES:
    case ERROR_WORKING_SET_QUOTA:
    case ERROR_PAGEFILE_QUOTA:
    case ERROR_NOT_ENOUGH_QUOTA:
    case ERROR_DISK_FULL:
    case ERROR_TOO_MANY_OPEN_FILES:
      return ErrorReason::MEMORY_PAGES_UNAVAILABLE;
    default:
      return ErrorReason::INTERNAL_FAULT;
  }
}

}  // namespace

absl::Status WindowsStatus(std::string_view call, uint32_t error) {
  return MakeErrorWithDetail(ReasonOf(error), WindowsDetail(call, error));
}

absl::Status LastErrorStatus(std::string_view call) { return WindowsStatus(call, GetLastError()); }

std::string WindowsDetail(std::string_view call, uint32_t error) {
  return std::string(call) + ": error " + std::to_string(error);
}

}  // namespace rnicd
