#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "grpcpp/channel.h"

// Where a daemon is found. An address is the directory of its sockets on Linux, and the name of its pipe on Windows;
// that for operators is another one.
namespace rnicd::inline client {

// Connects to the services for workloads, now. The channel does not connect again; on Windows it keeps a pipe open.
// Errors: FIELD_OUT_OF_RANGE of socket_dir for an address that cannot be one; transport failures.
absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectAsWorkload(const std::string& address,
                                                                 std::chrono::milliseconds deadline);

struct OperatorConnection {
  std::shared_ptr<grpc::Channel> channel;
  // The channel's socket; none on Windows.
  UniqueFd socket;
};

// The same for operators.
absl::StatusOr<OperatorConnection> ConnectAsOperator(const std::string& address, std::chrono::milliseconds deadline);
// Whether the daemon has ended the connection, or there is none. On Windows that is not known of a connection.
bool HasEnded(const OperatorConnection& connection);

// Where tickets of a daemon at this address are exchanged for descriptors; `name` is the one that OpenSession returned.
// Errors: a transport failure for a name that is a path.
absl::StatusOr<std::string> DescriptorAddress(const std::string& address, const std::string& name);

}  // namespace rnicd::inline client
