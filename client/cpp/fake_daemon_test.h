#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "client/cpp/fake_fd_server_test.h"
#include "client/cpp/fake_queues_test.h"
#include "client/cpp/fake_state_test.h"
#include "grpcpp/grpcpp.h"

namespace rnicd::inline client {

// The pages of one fast region, at most.
inline constexpr uint32_t kFakePagesMax = 1000;

// Speaks rnicd's protocol in this process, over real sockets, and keeps just the state that the client can notice.
// Knows one session at a time.
class FakeDaemon {
 public:
  FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;
  ~FakeDaemon();

  const std::string& socket_dir() const { return directory_.path(); }
  FakeState& state() { return state_; }
  FakeQueues& queues() { return queues_; }
  int adapters_opened() const;

  // All connections drop; nothing listens any more.
  void Die();
  // Refuses every descriptor with this reason.
  void RefuseDescriptors(ErrorReason reason) { fd_refusal_ = reason; }

  // Completes the pending request of a region: with its registration, or with a failure.
  void Complete(uint64_t region, std::optional<ErrorReason> failure = std::nullopt);
  // An armed completion queue has something.
  void Notify(uint64_t completion_queue, NtStatus status = NtStatus::kSuccess);
  // The peer of a queue pair is gone.
  void Disconnect(uint64_t queue_pair);
  // Waits for one request to pend and names its region.
  uint64_t WaitForPending();
  // Ends the session as the daemon does: the event, then the end of the stream.
  void EndSession(const std::string& cause);

 private:
  struct Services;

  // The event stream; the client opens it without waiting for it.
  std::shared_ptr<FakeEventWriter> WaitForEvents();
  void ServeFd(int connection);

  TemporaryDirectory directory_;
  FakeState state_;
  FakeQueues queues_{state_};
  std::unique_ptr<Services> services_;
  std::atomic<ErrorReason> fd_refusal_ = ErrorReason::UNSPECIFIED;
  std::optional<FakeFdServer> fd_server_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace rnicd::inline client
