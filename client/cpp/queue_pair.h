#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ndk/post_outcome.h"
#include "base/ndk/queue_pair.h"
#include "base/ndk/work_request.h"
#include "base/strong_id.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/work_chain.h"

namespace rnicd::inline client {

// QueuePairLimits with defaults, and what else a queue pair is created with. Each limit is at most the adapter's, in
// NdkAdapterInfo.
struct QueuePairOptions {
  // Maximum of outstanding receives.
  uint32_t receive_queue_depth = 64;
  // Maximum of outstanding initiator requests, including those with kOpFlagSilentSuccess.
  uint32_t initiator_queue_depth = 64;
  // Maximum of SGEs in one receive.
  uint32_t max_receive_request_sge = 4;
  // Maximum of SGEs in one initiator request other than a read.
  uint32_t max_initiator_request_sge = 4;
  // Maximum size of one inline payload, in bytes.
  uint32_t inline_data_size = 256;
  // Returned with every completion; any value.
  uint64_t qp_context = 0;
  // Flush when the peer has disconnected, failed or died. Create fails with kUnimplemented where the daemon is older
  // than this option.
  bool flush_with_peer = false;
  // Called at most once, when the peer disconnected or is dead. This does not flush requests. Runs on librnicd's
  // thread or in Client::Progress; must not block for long, but may use and drop any object. May be empty.
  std::function<void()> on_disconnected;
};

// Requests of a queue pair that are not known to be over.
struct OutstandingRequests {
  uint32_t initiator = 0;
  uint32_t receive = 0;
};

// One end of a connection between two sessions, or within one: an NDK queue pair.
//
// Lifetime: keeps the session. The destructor flushes and closes within ClientOptions::release_deadline; completions of
//           flushed requests stay on their queues. It waits for on_disconnected if that is running on another thread. A
//           moved-from queue pair is closed and may be destroyed or assigned.
// Threads:  calls are safe from several threads at once; moving and destroying are not.
// Errors:   OBJECT_NOT_FOUND for a queue pair that is closed or moved from; transport failures.
// Source:   NDK_FN_CREATE_QP, _FLUSH, _DISCONNECT; NDK_FN_DISCONNECT_EVENT_CALLBACK.
class QueuePair {
 public:
  // Creates the queue pair in the protection domain of the queues' session. Both queues may be the same. Errors:
  // ABOVE_ADAPTER_LIMIT, QUOTA_QUEUE_PAIRS, QUOTA_QUEUE_ENTRIES, CQ_OVERRUN, DEVICE_OUT_OF_RESOURCES; OBJECT_NOT_FOUND
  // for a queue that is closed or belongs to another session.
  static absl::StatusOr<QueuePair> Create(const CompletionQueue& receive_queue, const CompletionQueue& initiator_queue,
                                          const QueuePairOptions& options);

  QueuePair(QueuePair&&) noexcept = default;
  QueuePair& operator=(QueuePair&&) noexcept = default;

  // Id of the queue pair; 0 for one that is closed or moved from.
  QueuePairId id() const;
  // Address that the peer passes to Connect: opaque bytes, at most 64, constant for the queue pair's life. Empty when
  // closed.
  const std::string& address() const;
  // Reads the state from the daemon.
  absl::StatusOr<QueuePairState> State() const;

  // Connects to the queue pair with this address. Both sides call it, in any order; requests that one side posts before
  // the other has called wait. At most once in a queue pair's life. Errors: QP_NOT_CONNECTABLE, QP_ADDRESS_UNKNOWN.
  absl::Status Connect(std::string_view peer_address);
  // Waits for running transfers, then flushes, and notifies the peer. Errors: QP_NOT_CONNECTED.
  absl::Status Disconnect();
  // Completes every pending request with kCancelled. The queue pair cannot be used afterwards.
  absl::Status Flush();

  // Posts the requests in order, up to the first refused one. Every posted request completes exactly once, except one
  // with kOpFlagSilentSuccess that succeeds, which never completes. A status instead of an outcome means that nothing
  // was posted or, for a transport failure or SESSION_ENDING, that the outcome is unknown. Errors: BATCH_SIZE (1 to
  // 1024 requests), TRANSFER_TOO_LONG for an SGE of 4 GiB or more; for single requests see Post in queue_service.proto.
  absl::StatusOr<PostOutcome> Post(const WorkChain& chain) { return Post(chain.requests()); }
  // The same for requests made without a WorkChain, which name objects by their ids.
  absl::StatusOr<PostOutcome> Post(std::span<const WorkRequest> requests);

  // As Post, but waits only for room in the ring, not for the outcome. All requests count as posted. One that Post
  // would refuse completes in its place instead, with the reason of the refusal, as one that fails: what was posted
  // before it is executed, then the queue pair fails and what is behind it completes with kCancelled; silent requests
  // too. (A receive that is refused fails the queue pair at once.) Tokens that a FastRegister or Bind issues are not
  // returned: ask the region or window. Without a ring it waits for the call. A daemon without this feature refuses as
  // in Post, and the refusal is returned: its field names the request; those before it were posted. Errors, and nothing
  // was posted: QUEUE_FULL for more requests than Outstanding() leaves room for; BATCH_SIZE, TRANSFER_TOO_LONG.
  // Transport failures: it is unknown how many were posted.
  absl::Status PostWithoutOutcome(std::span<const WorkRequest> requests);
  absl::Status PostWithoutOutcome(const WorkChain& chain) { return PostWithoutOutcome(chain.requests()); }
  // Requests posted here whose end is not known, without a call. A completion that is polled proves that all earlier
  // requests of its queue are over: silent ones that succeed count until then. Always 0 with an older daemon.
  OutstandingRequests Outstanding() const;

  // Does what the destructor does and returns the outcome, within ClientOptions::call_deadline.
  absl::Status Close();

  // For Connector. Null when closed or moved from.
  std::shared_ptr<Connection> connection() const;

 private:
  struct Open;

  explicit QueuePair(std::shared_ptr<Open> open) : open_(std::move(open)) {}

  // Null when moved from or closed.
  std::shared_ptr<Open> open_;
};

}  // namespace rnicd::inline client
