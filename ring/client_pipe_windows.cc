#include <windows.h>

#include "base/status.h"
#include "base/windows_status.h"
#include "ring/client_pipe.h"

namespace rnicd::ring {

// An event: it announces without a byte, and a client with its handle cannot make SetEvent wait.
absl::StatusOr<ClientPipe> ClientPipe::Create() {
  HANDLE event = CreateEventW(nullptr, /*bManualReset=*/FALSE, /*bInitialState=*/FALSE, nullptr);
  HANDLE for_client = nullptr;
  // The client may wait for it, and not set it.
  if (event == nullptr ||
      DuplicateHandle(GetCurrentProcess(), event, GetCurrentProcess(), &for_client, SYNCHRONIZE, FALSE, 0) == 0) {
    const DWORD error = GetLastError();
    if (event != nullptr) {
      CloseHandle(event);
    }
    return MakeErrorWithDetail(ErrorReason::RINGS_UNAVAILABLE, WindowsDetail("CreateEvent, DuplicateHandle", error));
  }
  ClientPipe pipe;
  pipe.read_.Reset(HandleToLong(for_client));
  pipe.write_.Reset(HandleToLong(event));
  return pipe;
}

void ClientPipe::Announce() const { SetEvent(LongToHandle(write_.get())); }

}  // namespace rnicd::ring
