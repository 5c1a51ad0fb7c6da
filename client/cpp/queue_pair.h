#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "base/units.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/work_chain.h"

namespace rnicd::inline client {

// Each limit is at most the adapter's, in NdkAdapterInfo.
struct QueuePairOptions {
  // Receives outstanding.
  uint32_t receive_queue_depth = 64;
  // Initiator requests outstanding, those with kOpFlagSilentSuccess included.
  uint32_t initiator_queue_depth = 64;
  // SGEs in one receive.
  uint32_t max_receive_request_sge = 4;
  // SGEs in one initiator request other than a read.
  uint32_t max_initiator_request_sge = 4;
  // Bytes of one inline payload.
  uint32_t inline_data_size = 256;
  // Returned with every completion; any value.
  uint64_t qp_context = 0;
  // Called at most once, when the peer ended the connection or is gone. Requests are not flushed by it. Runs on a
  // thread of gRPC's; must not block for long, but may use and drop any object. May be empty.
  std::function<void()> on_disconnected;
};

enum class QueuePairState : uint32_t {
  // Not connected yet: receives can be posted.
  kInit = 1,
  // Connect was called: everything can be posted.
  kReadyToSend = 2,
  // Disconnected, flushed, or a request failed: nothing is executed any more.
  kError = 3,
};

// The remote token that a posted FastRegister or Bind was given.
struct IssuedToken {
  // Which request of the chain.
  size_t request_index = 0;
  // For peers; works once the request is executed.
  RemoteToken remote_token;
};

// What became of a chain.
struct PostOutcome {
  // How many requests from the start of the chain were posted; they will be executed.
  size_t posted = 0;
  // Why the request behind them was refused, its field beginning with "requests[N]."; ok when all were posted.
  absl::Status failure;
  // One for each posted FastRegister and Bind, in order.
  std::vector<IssuedToken> issued_tokens;

  // The token that was issued for this request of the chain; 0 when none was.
  RemoteToken TokenOf(size_t request_index) const;
};

// One end of a connection between two sessions, or within one: an NDK queue pair.
//
// Lifetime: keeps the session. The destructor flushes and closes within ClientOptions::release_deadline; completions of
//           what was flushed stay on their queues. It waits for on_disconnected where that runs on another thread. A
//           moved-from queue pair is closed and may be destroyed or assigned.
// Threads:  calls are safe from several threads at once; moving and destroying are not.
// Errors:   OBJECT_NOT_FOUND for a queue pair that is closed or moved from; transport failures.
// Source:   NDK_FN_CREATE_QP, _FLUSH, _DISCONNECT; NDK_FN_DISCONNECT_EVENT_CALLBACK.
class QueuePair {
 public:
  // In the protection domain of the queues' session. The two queues may be one. Errors: ABOVE_ADAPTER_LIMIT,
  // QUOTA_QUEUE_PAIRS, QUOTA_QUEUE_ENTRIES, CQ_OVERRUN, DEVICE_OUT_OF_RESOURCES; OBJECT_NOT_FOUND for a queue that is
  // closed or of another session.
  static absl::StatusOr<QueuePair> Create(const CompletionQueue& receive_queue, const CompletionQueue& initiator_queue,
                                          const QueuePairOptions& options);

  QueuePair(QueuePair&&) noexcept = default;
  QueuePair& operator=(QueuePair&&) noexcept = default;

  // 0 for one that is closed or moved from.
  QueuePairId id() const;
  // What the peer gives to Connect: opaque bytes, at most 64, the same for life. Empty for one that is closed.
  const std::string& address() const;
  // Asks the daemon.
  absl::StatusOr<QueuePairState> State() const;

  // To the queue pair of this address. Both sides call it, in any order; what one posts before the other has called
  // waits. Once in a queue pair's life. Errors: QP_NOT_CONNECTABLE, QP_ADDRESS_UNKNOWN.
  absl::Status Connect(std::string_view peer_address);
  // Waits for transfers under way, then flushes. The peer is told. Errors: QP_NOT_CONNECTED.
  absl::Status Disconnect();
  // Completes every pending request with kCancelled. The queue pair is of no more use.
  absl::Status Flush();

  // Posts the requests in order, up to the first that is refused. Every posted one completes exactly once, or not at
  // all when it has kOpFlagSilentSuccess and succeeds. A status instead of an outcome means that nothing was posted,
  // or, when it is a transport failure, that nobody knows. Errors: BATCH_SIZE (1 to 1024 requests), TRANSFER_TOO_LONG
  // for an SGE of 4 GiB or more; of single requests see Post in queue_service.proto.
  absl::StatusOr<PostOutcome> Post(const WorkChain& chain);

  // What the destructor does, with its outcome, within ClientOptions::call_deadline.
  absl::Status Close();

 private:
  struct Open;

  explicit QueuePair(std::shared_ptr<Open> open) : open_(std::move(open)) {}

  // Null when moved from or closed.
  std::shared_ptr<Open> open_;
};

}  // namespace rnicd::inline client
