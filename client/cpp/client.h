#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/adapter_info.h"
#include "base/ndk/sge.h"
#include "base/status.h"
#include "base/strong_id.h"
#include "client/cpp/client_options.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"

namespace rnicd::inline client {

class Connection;

// One adapter of the node, as ListAdapters describes it.
struct AdapterSummary {
  // Name, stable across restarts; for ClientOptions::adapter_name.
  std::string name;
  // "soft", "verbs" or, on Windows, "networkdirect".
  std::string provider;
  // The card's NUMA node; -1 when it has none.
  int32_t numa_node = -1;
  NdkAdapterInfo info;
};

// The session's use of one counted resource.
struct ResourceUse {
  // "memory_bytes", "memory_objects", "pinned_bytes", "regions", ...: see ResourceUse in session_service.proto.
  std::string name;
  uint64_t used = 0;
  // 0 means no limit.
  uint64_t limit = 0;
};

struct SessionUse {
  SessionId id;
  std::string label;
  std::vector<ResourceUse> resources;
};

// Objects and memory that the session still held when it was closed.
struct Reclaimed {
  uint64_t regions = 0;
  uint64_t pinned_bytes = 0;
  uint64_t memory_bytes = 0;
};

// This process's session with rnicd, from which memory, regions and queues are created. All of them belong to one
// protection domain, on one adapter.
//
// Lifetime: a handle on a connection that every object made from it shares. They may outlive the Client and keep
//           working; the session is closed when the last of them is destroyed. A moved-from Client may be destroyed
//           or assigned to; its calls fail with SESSION_REQUIRED.
//           A child made by fork cannot use it: calls fail with kFailedPrecondition, a transport failure, and its
//           destructors only free memory. It may open a session of its own.
// Threads:  calls are safe from several threads at once; moving and destroying are not.
// Errors:   the daemon's own, readable with ErrorInfoOf and NtStatusOf of base/status.h; or a transport failure
//           (transport_failure.h): kUnavailable when rnicd is not running, kDeadlineExceeded.
class Client {
 public:
  // Connects and opens a session with its event stream. Adapter and protection domain are opened when first needed.
  // Errors: FIELD_OUT_OF_RANGE (socket_dir too long, label, RNICD_DATA_PATH), QUOTA_SESSIONS, DAEMON_DRAINING,
  // DAEMON_HANDED_OVER (for all of call_deadline), TENANT_REFUSED, GRANT_REFUSED.
  static absl::StatusOr<Client> Connect(ClientOptions options);

  // Id of the session; 0 for a moved-from client.
  SessionId session_id() const;
  // The name of the tenant whose limits the session shares, "guests/uid=1000"; empty for a moved-from client.
  std::string tenant() const;

  // Every adapter of the node.
  absl::StatusOr<std::vector<AdapterSummary>> ListAdapters() const;
  // The limits of this session's adapter. Errors: ADAPTER_NOT_FOUND. Source: NDK_FN_QUERY_ADAPTER_INFO.
  absl::StatusOr<NdkAdapterInfo> QueryAdapterInfo() const;
  // The session's current usage and limits.
  absl::StatusOr<SessionUse> GetSession() const;
  // Token for SGEs that name logical addresses; constant for the session's life. Never for a peer.
  absl::StatusOr<PrivilegedToken> GetPrivilegedToken() const;

  // With ClientOptions::callbacks_in_progress: runs the callbacks that are due, and waits for the first up to the
  // timeout. Call it from one thread at a time, and not inside of a callback.
  absl::Status Progress(std::chrono::milliseconds wait_max) const;
  // A descriptor for poll, select or epoll that becomes readable when Progress has something to do, and sometimes when
  // it has not. It belongs to the session and ends with it. Errors: kResourceExhausted, a transport failure. Only on
  // Linux.
  absl::StatusOr<int> EventDescriptor() const;

  // Ends the session now for everything that shares it: its tokens stop working, later calls fail, and pending requests
  // complete with SESSION_ENDING. Mappings of Memory stay readable and writable until it is destroyed.
  absl::StatusOr<Reclaimed> Close();

  // For the objects created from this client. Null when moved from.
  const std::shared_ptr<Connection>& connection() const { return connection_; }

 private:
  explicit Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

  std::shared_ptr<Connection> connection_;
};

}  // namespace rnicd::inline client
