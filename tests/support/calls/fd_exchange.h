#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/unique_fd.h"
#include "rnicd/v1/fd_channel.pb.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {

// The daemon's reply on the fd socket.
struct FdAnswer {
  // False if the daemon closed the connection or did not reply in time.
  bool replied = false;
  bool timed_out = false;
  v1::FdReply reply;
  std::vector<UniqueFd> descriptors;

  // True for a reply without an error.
  bool ok() const { return replied && !reply.has_error(); }
};

// A client connection to the fd socket that can also send malformed packets.
class FdSocket {
 public:
  explicit FdSocket(const std::string& path);

  bool connected() const { return socket_.valid(); }
  int get() const { return socket_.get(); }
  // Sends one packet with these bytes and descriptors.
  bool Send(std::string_view bytes, const std::vector<int>& descriptors = {});
  FdAnswer Receive(std::chrono::milliseconds limit = kTimeout);

 private:
  UniqueFd socket_;
};

// The bytes of a well-formed request.
std::string FdRequestBytes(const std::string& ticket, uint32_t fd_count);

// One request and its reply, with any bytes and descriptors. Returns when the daemon has none of the descriptors any
// more that it needed for the exchange.
FdAnswer ExchangeFd(const std::string& path, std::string_view bytes, const std::vector<int>& descriptors = {});
// The two exchanges of a correct client.
FdAnswer FetchFd(const std::string& path, const std::string& ticket);
FdAnswer SendFd(const std::string& path, const std::string& ticket, int fd);

}  // namespace rnicd::test
