#include "tests/support/process/pipe_reader.h"

namespace rnicd::test {
namespace {

std::chrono::steady_clock::time_point After(std::chrono::milliseconds limit) {
  return std::chrono::steady_clock::now() + limit;
}

}  // namespace

std::string PipeReader::Text() const {
  MutexLock lock(mutex_);
  return text_;
}

std::optional<std::string> PipeReader::NextLine(std::chrono::milliseconds limit) {
  const auto deadline = After(limit);
  MutexLock lock(mutex_);
  for (;;) {
    const size_t end = text_.find('\n', fetched_);
    if (end != std::string::npos) {
      std::string line = text_.substr(fetched_, end - fetched_);
      fetched_ = end + 1;
      return line;
    }
    if (ended_ || !changed_.WaitUntil(mutex_, deadline)) {
      return std::nullopt;
    }
  }
}

bool PipeReader::WaitFor(std::string_view part, std::chrono::milliseconds limit) {
  const auto deadline = After(limit);
  MutexLock lock(mutex_);
  while (text_.find(part) == std::string::npos) {
    if (ended_ || !changed_.WaitUntil(mutex_, deadline)) {
      return text_.find(part) != std::string::npos;
    }
  }
  return true;
}

bool PipeReader::WaitForEnd(std::chrono::milliseconds limit) {
  const auto deadline = After(limit);
  MutexLock lock(mutex_);
  while (!ended_) {
    if (!changed_.WaitUntil(mutex_, deadline)) {
      return ended_;
    }
  }
  return true;
}

}  // namespace rnicd::test
