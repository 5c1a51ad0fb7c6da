// Over the daemon's pipe, by librnicd.
#include "client/cpp/channel/fd_socket.h"
#include "tests/support/calls/fd_exchange.h"
#include "wire/error_detail.h"

namespace rnicd::test {

FdAnswer FetchFd(const std::string& path, const std::string& ticket) {
  absl::StatusOr<UniqueFd> section = client::FetchDescriptor(path, ticket, kTimeout);
  FdAnswer answer;
  answer.replied = true;
  if (section.ok()) {
    answer.descriptors.push_back(*std::move(section));
  } else {
    *answer.reply.mutable_error() = wire::ToErrorDetail(section.status());
  }
  return answer;
}

}  // namespace rnicd::test
