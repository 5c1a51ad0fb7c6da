#pragma once

#include <utility>

namespace rnicd {

// Owns what a number names at the system, and closes it by `Closer::Close`. -1 names nothing.
template <typename Closer>
class UniqueHandle {
 public:
  UniqueHandle() = default;
  explicit UniqueHandle(int handle) : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(other.Release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) {
      Reset(other.Release());
    }
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() { Reset(-1); }

  int get() const { return handle_; }
  bool valid() const { return handle_ >= 0; }
  int Release() { return std::exchange(handle_, -1); }
  void Reset(int handle) {
    if (handle_ >= 0) {
      Closer::Close(handle_);
    }
    handle_ = handle;
  }

 private:
  int handle_ = -1;
};

}  // namespace rnicd
