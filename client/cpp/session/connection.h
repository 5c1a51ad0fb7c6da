#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "client/cpp/channel/channel.h"
#include "client/cpp/channel/method.h"
#include "client/cpp/channel/methods.h"
#include "client/cpp/client_options.h"
#include "client/cpp/rings/lost_posts.h"
#include "client/cpp/rings/ring_path.h"
#include "client/cpp/session/event_stream.h"
#include "client/cpp/session/pending_requests.h"
#include "client/cpp/session/progress_watch.h"
#include "client/cpp/session/queue_events.h"

namespace rnicd::inline client {

// One connection to the daemon with its session, its event stream, and the adapter and protection domain of its regions
// and queues.
// Lifetime: shared by the Client, every object created from it and every pending request; the session is closed when
//           the last of them is destroyed, or by CloseSession.
// Threads:  safe.
// Errors:   those of the RPCs; transport failures.
class Connection {
 public:
  // Errors: FIELD_OUT_OF_RANGE for a socket_dir that does not fit a Unix address, or an RNICD_DATA_PATH that names no
  // DataPath; those of OpenSession.
  static absl::StatusOr<std::shared_ptr<Connection>> Open(ClientOptions options);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  SessionId session_id() const { return session_id_; }
  // Name of the tenant whose limits the session shares.
  const std::string& tenant() const { return tenant_; }
  const std::string& fd_socket_path() const { return fd_socket_path_; }
  const ClientOptions& options() const { return options_; }
  PendingRequests& pending() { return *receivers_.pending; }
  QueueEvents& queue_events() { return *receivers_.queues; }
  ConnectionEvents& connection_events() { return *receivers_.connections; }
  ProgressWatch& progress() { return *receivers_.progress; }
  LostPosts& lost_posts() { return lost_posts_; }
  RingPath& rings() { return *rings_; }
  const std::shared_ptr<RingPath>& shared_rings() const { return rings_; }
  // Errors: a transport failure in a child made by fork.
  absl::Status CheckProcess() const { return channel_->CheckProcess(); }
  // The session's events; after Open never null. Not to be called with a lock that a handler of QueueEvents or the end
  // of a ring takes.
  EventStream& events() { return *events_; }

  // One call, within options().call_deadline; `wait` is the time for which the call asks the daemon to wait, and is
  // added to the timeout.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(const Method<Request, Response>& method, const std::type_identity_t<Request>& request,
                                std::chrono::milliseconds wait = std::chrono::milliseconds(0)) {
    absl::StatusOr<Response> response = client::Call(*channel_, method, request, options_.call_deadline + wait);
    if (events_ != nullptr) {
      events_->Take();
    }
    return response;
  }

  // A call that releases something, from a destructor: within options().release_deadline, or not at all once the
  // session has ended or one of these calls has timed out.
  template <typename Request, typename Response>
  void Release(const Method<Request, Response>& method, const std::type_identity_t<Request>& request) {
    if (skip_releases_) {
      return;
    }
    const absl::Status status = client::Call(*channel_, method, request, options_.release_deadline).status();
    if (status.code() == absl::StatusCode::kDeadlineExceeded) {
      skip_releases_ = true;
    }
  }

  // Opened once, on first use; after a failure the next caller retries.
  absl::StatusOr<AdapterId> Adapter();
  absl::StatusOr<ProtectionDomainId> ProtectionDomain();

  // Whether the ring has ended alone with posts in it that the daemon never takes. Then flushes their queue pairs, and
  // delivers them behind what the daemon has reported: once.
  bool DeliverLostPosts();
  // Ends the session now. Pending requests fail with SESSION_ENDING.
  absl::StatusOr<v1::CloseSessionResponse> CloseSession();

 private:
  Connection(ClientOptions options, std::shared_ptr<Channel> channel);

  absl::Status OpenSession();
  absl::StatusOr<std::unique_ptr<RingChannel>> OpenRing();
  absl::StatusOr<AdapterId> AdapterLocked() RNICD_REQUIRES(mutex_);

  // Constant after Open.
  const ClientOptions options_;
  const std::shared_ptr<Channel> channel_;
  const EventStream::Receivers receivers_;
  LostPosts lost_posts_;
  // The event stream ends it.
  const std::shared_ptr<RingPath> rings_;
  SessionId session_id_;
  std::string tenant_;
  std::string fd_socket_path_;
  std::shared_ptr<EventStream> events_;

  // Synchronises itself.
  std::atomic<bool> skip_releases_ = false;

  // Held while the adapter or the domain is being opened, so that each is opened only once.
  Mutex mutex_;
  AdapterId adapter_ RNICD_GUARDED_BY(mutex_);
  ProtectionDomainId protection_domain_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::inline client
