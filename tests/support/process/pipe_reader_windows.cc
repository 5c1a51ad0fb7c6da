#include <windows.h>

#include <array>
#include <utility>

#include "tests/support/process/pipe_reader.h"

namespace rnicd::test {

PipeReader::PipeReader(UniqueFd pipe) : pipe_(std::move(pipe)), thread_([this] { Run(); }) {}

PipeReader::~PipeReader() {
  CancelIoEx(LongToHandle(pipe_.get()), nullptr);
  thread_.join();
}

void PipeReader::Run() {
  while (ReadOnce()) {
  }
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.NotifyAll();
}

bool PipeReader::ReadOnce() {
  std::array<char, 4096> buffer;
  DWORD count = 0;
  if (ReadFile(LongToHandle(pipe_.get()), buffer.data(), buffer.size(), &count, nullptr) == 0 || count == 0) {
    return false;
  }
  MutexLock lock(mutex_);
  text_.append(buffer.data(), count);
  changed_.NotifyAll();
  return true;
}

}  // namespace rnicd::test
