#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/channel/channel.h"

// Where a daemon is found. An address is the directory of its sockets on Linux, and the name of its pipe on Windows;
// that for operators is another one.
namespace rnicd::inline client {

// Connects to the services for workloads, now.
// Errors: FIELD_OUT_OF_RANGE of socket_dir for an address that cannot be one; transport failures: kUnavailable at once
//         when nothing listens, kDeadlineExceeded when the listener's queue is full until the deadline.
absl::StatusOr<std::shared_ptr<Channel>> ConnectAsWorkload(const std::string& address,
                                                           std::chrono::milliseconds deadline);
// The same for operators; `generation` is one of OlderGenerations, or 0 for the daemon that takes connections.
absl::StatusOr<std::shared_ptr<Channel>> ConnectAsOperator(const std::string& address,
                                                           std::chrono::milliseconds deadline, uint32_t generation = 0);
// Older daemons that have handed over and still have sessions, the newest first; also some that have just ended.
std::vector<uint32_t> OlderGenerations(const std::string& address);

// Where tickets of a daemon at this address are exchanged for descriptors; `name` is the one that OpenSession returned.
// Errors: a transport failure for a name that is a path.
absl::StatusOr<std::string> DescriptorAddress(const std::string& address, const std::string& name);

}  // namespace rnicd::inline client
