// Source: CreateIoCompletionPort, GetQueuedCompletionStatus, PostQueuedCompletionStatus of the Windows API.

#include "provider/networkdirect/card/completion_port.h"

#include <thread>

namespace rnicd::provider {

// One thread waits at each port.
CompletionPort::CompletionPort() : port_(CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 1)) {}

CompletionPort::~CompletionPort() {
  if (port_ != nullptr) {
    CloseHandle(port_);
  }
}

bool CompletionPort::Associate(HANDLE file) {
  return port_ != nullptr && CreateIoCompletionPort(file, port_, 0, 0) == port_;
}

void CompletionPort::Notify(OVERLAPPED* call) { PostQueuedCompletionStatus(port_, 0, 0, call); }

// A call that failed is notified like any other: its object knows the status.
OVERLAPPED* CompletionPort::Wait(std::chrono::milliseconds timeout) {
  if (port_ == nullptr) {  // No card could be opened.
    std::this_thread::sleep_for(timeout);
    return nullptr;
  }
  DWORD bytes = 0;
  ULONG_PTR key = 0;
  OVERLAPPED* call = nullptr;
  GetQueuedCompletionStatus(port_, &bytes, &key, &call, static_cast<DWORD>(timeout.count()));
  return call;
}

void CompletionPort::CloseFile(HANDLE file) { CloseHandle(file); }

}  // namespace rnicd::provider
