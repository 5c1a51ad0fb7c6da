#include <windows.h>

#include <cstdint>

#include "base/status.h"
#include "base/windows_status.h"
#include "ring/doorbell.h"

namespace rnicd::ring {

// An event that is reset by the wait that it ends. No holder of a handle can make another one block.
absl::StatusOr<UniqueFd> MakeDoorbell() {
  HANDLE doorbell = CreateEventW(nullptr, /*bManualReset=*/FALSE, /*bInitialState=*/FALSE, nullptr);
  if (doorbell == nullptr) {
    return MakeErrorWithDetail(ErrorReason::RINGS_UNAVAILABLE, WindowsDetail("CreateEvent", GetLastError()));
  }
  return UniqueFd(HandleToLong(doorbell));
}

void RingDoorbell(int doorbell) { SetEvent(LongToHandle(doorbell)); }

}  // namespace rnicd::ring
