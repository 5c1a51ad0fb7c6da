#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/post_outcome.h"
#include "base/ndk/queue_pair.h"
#include "base/ndk/work_request.h"
#include "base/strong_id.h"
#include "daemon/core/queue/queue_pair.h"
#include "daemon/core/queue/session_queues.h"
#include "daemon/core/region/session_domains.h"
#include "daemon/core/region/session_mappings.h"
#include "daemon/core/region/session_regions.h"
#include "daemon/core/region/session_window.h"
#include "daemon/core/request/session_objects.h"

namespace rnicd::core {

class WorkRequestResolver;

struct CreateQpArguments {
  ProtectionDomainId domain;
  CompletionQueueId receive_queue;
  CompletionQueueId initiator_queue;
  uint64_t context = 0;
  QueuePairLimits limits;
  // Flushes the queue pair when its peer has ended.
  bool flush_with_peer = false;
};

// How a request that is refused is reported.
enum class Refusals : uint8_t {
  // In the outcome. It ends the chain: what is behind it never happened.
  kInOutcome,
  // As a completion in its place, which fails the queue pair. All of the chain counts as posted; the outcome's failure
  // is the first of them.
  kAsCompletions,
};

struct QueuePairView {
  QueuePairState state = QueuePairState::kInit;
  std::string address;
};

// The tables with the objects that a queue pair and its requests name. All of them outlive the queue pairs.
struct PairTables {
  const SessionDomains::Table& domains;
  const SessionQueues::Table& queues;
  const SessionRegions::Table& regions;
  const SessionWindows::Table& windows;
  const LogicalAddressSpace& addresses;
};

// The queue pairs of a session, and what is posted to them.
class SessionPairs final : public SessionObjects<QueuePairId, QueuePair> {
 public:
  SessionPairs(SessionRequests& requests, const PairTables& named) : SessionObjects(requests), named_(named) {}

  absl::StatusOr<QueuePairId> Create(const CreateQpArguments& arguments);
  absl::StatusOr<QueuePairView> Query(QueuePairId id);
  absl::Status Connect(QueuePairId id, std::string_view peer_address);
  absl::Status Disconnect(QueuePairId id);
  absl::Status Flush(QueuePairId id);
  MaybePending<> Close(QueuePairId id, PendingChoice choice, const Done<>& done);
  absl::StatusOr<PostOutcome> Post(QueuePairId id, std::span<const WorkRequest> requests,
                                   Refusals refusals = Refusals::kInOutcome);

 private:
  friend class Session;
  // A queue pair and the hold that keeps it from being closed meanwhile.
  struct HeldQueuePair {
    std::shared_ptr<QueuePair> pair;
    Closable::Hold hold;
  };
  absl::StatusOr<HeldQueuePair> HoldQueuePair(QueuePairId id);
  // Errors: ADDRESS_NOT_PERMITTED; QP_ADDRESS_UNKNOWN, DEVICE_NOT_CAPABLE.
  absl::Status CheckMayReach(Adapter& adapter, std::string_view peer_address) const;
  absl::StatusOr<RemoteToken> PostOne(QueuePair& pair, const WorkRequestResolver& resolver, const WorkRequest& request);
  void ReportRefusal(const WorkRequest& request, const absl::Status& refusal, PostOutcome* outcome);
  // Ends the queue pairs of a dead queue, on a worker.
  void EndQueuePairsOf(const std::shared_ptr<CompletionQueue>& queue);
  // Flushes on a worker, because the queue pair or its peer is the caller.
  void FlushLater(QueuePairId id);

  const PairTables named_;
};

}  // namespace rnicd::core
