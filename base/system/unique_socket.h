#pragma once

#include <utility>

namespace rnicd {

// Owns a socket and closes it. The counterpart of UniqueFd, because Windows closes sockets by a call of their own; of a
// SOCKET, as of any handle there, only 32 bits are significant.
class UniqueSocket {
 public:
  UniqueSocket() = default;
  explicit UniqueSocket(int socket) : socket_(socket) {}
  UniqueSocket(UniqueSocket&& other) noexcept : socket_(other.Release()) {}
  UniqueSocket& operator=(UniqueSocket&& other) noexcept {
    if (this != &other) {
      Reset(other.Release());
    }
    return *this;
  }
  UniqueSocket(const UniqueSocket&) = delete;
  UniqueSocket& operator=(const UniqueSocket&) = delete;
  ~UniqueSocket() { Reset(-1); }

  int get() const { return socket_; }
  bool valid() const { return socket_ >= 0; }
  int Release() { return std::exchange(socket_, -1); }
  void Reset(int socket) {
    if (socket_ >= 0) {
      Close(socket_);
    }
    socket_ = socket;
  }

 private:
  static void Close(int socket);

  int socket_ = -1;
};

}  // namespace rnicd
