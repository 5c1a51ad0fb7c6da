#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"

// Where a daemon is found. An address is the directory of its sockets on Linux, and the name of its pipe on Windows;
// that for operators is another one.
namespace rnicd::inline client {

// A channel to the services for workloads. On Linux it connects on the first call; on Windows a pipe is opened now, and
// kept open for as long as the channel lives.
// Errors: FIELD_OUT_OF_RANGE of socket_dir for an address that cannot be one; on Windows transport failures of the
// pipe.
absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectAsWorkload(const std::string& address,
                                                                 std::chrono::milliseconds deadline);
// The same for operators.
absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectAsOperator(const std::string& address,
                                                                 std::chrono::milliseconds deadline);

// Where tickets of a daemon at this address are exchanged for descriptors; `name` is the one that OpenSession returned.
// Errors: a transport failure for a name that is a path.
absl::StatusOr<std::string> DescriptorAddress(const std::string& address, const std::string& name);

}  // namespace rnicd::inline client
