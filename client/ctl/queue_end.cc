#include "client/ctl/queue_end.h"

#include <chrono>
#include <utility>
#include <vector>

#include "base/status.h"

namespace rnicd::ctl {
namespace {

// After it a request is reported as lost.
constexpr std::chrono::seconds kTimeout{30};

}  // namespace

absl::StatusOr<QueueEnd> QueueEnd::Open(const Client& client, uint32_t depth) {
  RNICD_ASSIGN_OR_RETURN(CompletionQueue queue, CompletionQueue::Create(client, 2 * depth));
  const QueuePairOptions options{.receive_queue_depth = depth, .initiator_queue_depth = depth};
  RNICD_ASSIGN_OR_RETURN(QueuePair pair, QueuePair::Create(queue, queue, options));
  return QueueEnd{std::move(queue), std::move(pair)};
}

absl::StatusOr<PostOutcome> QueueEnd::Post(const WorkChain& chain) {
  RNICD_ASSIGN_OR_RETURN(PostOutcome outcome, pair.Post(chain));
  RNICD_RETURN_IF_ERROR(outcome.failure);
  return outcome;
}

absl::StatusOr<Completion> QueueEnd::Finish() {
  RNICD_ASSIGN_OR_RETURN(const std::vector<Completion> completions, queue.PollFor(1, kTimeout));
  if (completions.empty()) {
    return absl::InternalError("a work request did not complete within 30 seconds");
  }
  return completions.front();
}

absl::StatusOr<Completion> QueueEnd::Try(const WorkChain& chain) {
  RNICD_RETURN_IF_ERROR(Post(chain).status());
  return Finish();
}

absl::Status QueueEnd::Run(const WorkChain& chain, const std::string& what) {
  RNICD_ASSIGN_OR_RETURN(const Completion completion, Try(chain));
  return completion.ok() ? absl::OkStatus()
                         : absl::InternalError(what + " ended with " + std::string(NtStatusName(completion.status)) +
                                               " instead of STATUS_SUCCESS");
}

absl::Status ConnectEnds(QueueEnd& one, QueueEnd& other) {
  RNICD_RETURN_IF_ERROR(one.pair.Connect(other.pair.address()));
  return other.pair.Connect(one.pair.address());
}

}  // namespace rnicd::ctl
