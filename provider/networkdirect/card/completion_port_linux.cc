// The queue that stands for an I/O completion port.

#include "provider/networkdirect/card/completion_port.h"

namespace rnicd::provider {

CompletionPort::CompletionPort() = default;
CompletionPort::~CompletionPort() = default;

bool CompletionPort::Associate(HANDLE file) {
  static_cast<OverlappedFile*>(file)->queue = this;
  return true;
}

void CompletionPort::Notify(OVERLAPPED* call) { Post(call); }

void CompletionPort::Post(OVERLAPPED* call) {
  MutexLock lock(mutex_);
  calls_.push_back(call);
  changed_.NotifyOne();
}

OVERLAPPED* CompletionPort::Wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (calls_.empty()) {
    if (!changed_.WaitUntil(mutex_, deadline)) {
      return nullptr;
    }
  }
  OVERLAPPED* const call = calls_.front();
  calls_.pop_front();
  return call;
}

void CompletionPort::CloseFile(HANDLE file) { delete static_cast<OverlappedFile*>(file); }

}  // namespace rnicd::provider
