#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "rnicd/v1/fd_channel.pb.h"
#include "tests/support/wait.h"

namespace rnicd::test {

// What came back on the fd socket.
struct FdAnswer {
  // False when the daemon hung up, or said nothing in time, instead of replying.
  bool replied = false;
  bool timed_out = false;
  v1::FdReply reply;
  std::vector<UniqueFd> descriptors;

  // A reply without an error.
  bool ok() const { return replied && !reply.has_error(); }
};

// One end of the fd socket, able to say wrong things.
class FdSocket {
 public:
  explicit FdSocket(const std::string& path);

  bool connected() const { return socket_.valid(); }
  int get() const { return socket_.get(); }
  // One packet with these bytes and descriptors.
  bool Send(std::string_view bytes, const std::vector<int>& descriptors = {});
  FdAnswer Receive(std::chrono::milliseconds limit = kPatience);

 private:
  UniqueFd socket_;
};

// The bytes of a well-formed request.
std::string FdRequestBytes(const std::string& ticket, uint32_t fd_count);

// One whole exchange with any bytes and any descriptors.
FdAnswer ExchangeFd(const std::string& path, std::string_view bytes, const std::vector<int>& descriptors = {});
// The two that a good client makes.
FdAnswer FetchFd(const std::string& path, const std::string& ticket);
FdAnswer SendFd(const std::string& path, const std::string& ticket, int fd);

}  // namespace rnicd::test
