#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

// Everything in librnicd is in the inline namespace `client`, so that it is written rnicd::Client, yet can be linked
// into one program with the daemon's own classes of the same names.
namespace rnicd::inline client {

// How work requests and registrations travel to the daemon, and completions back.
enum class DataPath : uint8_t {
  // As kRings where the daemon serves rings, but with calls for the first few registrations; else as kCalls. The
  // environment variable RNICD_DATA_PATH, set to "calls" or "rings", selects one of them.
  kAutomatic,
  // Each is a call.
  kCalls,
  // Through memory that this process and the daemon share, without a call for each. If the daemon serves no rings, or
  // no further ring or queue for this session, operations that need one fail with the reason. Refused on Windows.
  kRings,
};

// Default address of the daemon on this machine, as the device plugin and other tools name it in the environment
// variable RNICD_SOCKET_DIR. If that is not set: on Linux the directory of its sockets, "/run/rnicd"; on Windows the
// name of its pipe, "\\.\pipe\rnicd".
std::string DefaultSocketDir();

// Options of Client::Connect. The defaults suit a workload in a pod that mounts the socket directory.
struct ClientOptions {
  // The directory that holds rpc.sock and the fd socket. The path of each must fit a Unix address (107 bytes). On
  // Windows the name of a pipe.
  std::string socket_dir = DefaultSocketDir();
  // Shown to operators beside the process; up to 64 printable ASCII characters. May be empty. Grants nothing.
  std::string label;
  // The secret of a grant: the session then belongs to the grant's tenant. Empty means the value of the environment
  // variable RNICD_GRANT; if that is not set either, the node's policy decides the tenant of this process.
  std::string grant;
  // A name from ListAdapters. Empty means the node's first adapter.
  std::string adapter_name;
  // Timeout of connecting, and of one call, which then fails with kDeadlineExceeded. The time to register memory is
  // linear in its size.
  std::chrono::milliseconds call_deadline{30'000};
  // Timeout of one destructor's wait for the daemon. After one destructor timed out, later destructors of the same
  // connection do not wait at all; the daemon releases everything when the connection or the process ends.
  std::chrono::milliseconds release_deadline{5'000};
  DataPath data_path = DataPath::kAutomatic;
  // The longest time that a thread polls shared memory, without sleeping, for an outcome or a completion; 0 never does.
  // It is done only where the daemon runs on another processor, and for shorter times when waits are long.
  std::chrono::microseconds spin_max{20};
  // Where callbacks run: on a thread that librnicd starts with the first of them, or inside of Client::Progress, and
  // then there is no thread. Without callbacks there is none anyway.
  bool callbacks_in_progress = false;
  // Called at most once, when the session ends without Client::Close: evicted, daemon stopping, connection lost.
  // The status is SESSION_ENDING with the daemon's cause in ErrorInfo::field, or a transport failure.
  // Must not block.
  std::function<void(const absl::Status&)> on_session_ended;
  // Called at most once, when the card of the adapter is gone. What was made on it has ended, memory stays; a new
  // client may use another card. Must not block.
  std::function<void()> on_adapter_removed;
};

}  // namespace rnicd::inline client
