#pragma once

#include <utility>

namespace rnicd {

// Owns a file descriptor and closes it. On Windows it is a HANDLE: of one only 32 bits are significant, so that
// LongToHandle gives back what HandleToLong has made an int. Calls that fail with a null handle must make -1 of it.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset(other.Release());
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { Reset(-1); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd) {
    if (fd_ >= 0) {
      Close(fd_);
    }
    fd_ = fd;
  }

 private:
  static void Close(int fd);

  int fd_ = -1;
};

}  // namespace rnicd
