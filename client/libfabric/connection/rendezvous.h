#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>

#include "base/files/unique_fd.h"

// Where endpoints meet. Their addresses are always those of the Internet, because what runs above insists on them. The
// sockets are TCP, or, when the parameter socket_dir (FI_RNICD_SOCKET_DIR) names a folder, Unix sockets in it that are
// named after the addresses: for containers that share a folder and no network.
namespace rnicd::fi {

// A socket and the addresses that it stands for.
struct Stream {
  UniqueFd socket;
  sockaddr_storage local = {};
  // Without a family when it was accepted in a folder: the peer's request has it.
  sockaddr_storage peer = {};
};

// A name at which peers find the program.
class Listener {
 public:
  // Takes the name; port 0 is any free one.
  // Errors: -FI_EADDRINUSE another has it; -ENAMETOOLONG folder and name do not fit; else what the system says.
  static int Open(const sockaddr_storage& address, std::unique_ptr<Listener>* listener);
  // The name is free then.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int Listen(int backlog);
  // 0, or a negative errno value: -FI_EAGAIN when nobody waits.
  int Accept(Stream* stream);
  int descriptor() const { return socket_.get(); }
  const sockaddr_storage& address() const { return address_; }

 private:
  Listener() = default;

  UniqueFd socket_;
  sockaddr_storage address_ = {};
  // Empty for TCP.
  std::string path_;
};

// Begins to connect, from `local` if it is of a family; writable when that has succeeded or failed.
// Errors: -FI_ECONNREFUSED nobody listens, as far as is known at once; -FI_EAGAIN the listener's queue is full; else
// what
//         the system says.
int BeginConnect(const sockaddr_storage& peer, const sockaddr_storage& local, Stream* stream);

}  // namespace rnicd::fi
