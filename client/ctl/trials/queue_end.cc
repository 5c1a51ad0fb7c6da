#include "client/ctl/trials/queue_end.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/status.h"

namespace rnicd::ctl {
namespace {

// After it a request is reported as lost.
constexpr std::chrono::seconds kTimeout{30};

template <typename RunPart>
absl::StatusOr<uint64_t> Transfer(const TransferRange& range, uint64_t request_max, const RunPart& run_part) {
  const Instant began = Instant::clock::now();
  for (uint64_t done = 0; done < range.buffer.size();) {
    const uint64_t length = std::min<uint64_t>(range.buffer.size() - done, request_max);
    RNICD_RETURN_IF_ERROR(
        run_part(Sge::Of(range.buffer.subspan(done, length), range.token),
                 RemoteMemory{.address = {range.remote.address.value + done}, .token = range.remote.token}));
    done += length;
  }
  return MicrosecondsSince(began);
}

}  // namespace

absl::StatusOr<QueueEnd> QueueEnd::Open(const Client& client, uint32_t depth) {
  RNICD_ASSIGN_OR_RETURN(CompletionQueue queue, CompletionQueue::Create(client, 2 * depth));
  const QueuePairOptions options{.receive_queue_depth = depth, .initiator_queue_depth = depth};
  RNICD_ASSIGN_OR_RETURN(QueuePair pair, QueuePair::Create(queue, queue, options));
  RNICD_ASSIGN_OR_RETURN(const NdkAdapterInfo info, client.QueryAdapterInfo());
  const uint64_t request_max = std::max(info.max_transfer_length, 1u);
  return QueueEnd{.queue = std::move(queue), .pair = std::move(pair), .request_max = request_max};
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
  if (completion.ok()) {
    return absl::OkStatus();
  }
  // A daemon that is older than the reasons of completions gives none.
  return completion.reason != ErrorReason::UNSPECIFIED
             ? MakeErrorWithDetail(completion.reason, what)
             : absl::InternalError(what + " ended with " + std::string(NtStatusName(completion.status)) +
                                   " instead of STATUS_SUCCESS");
}

absl::StatusOr<uint64_t> QueueEnd::Write(const TransferRange& range) {
  return Transfer(range, request_max, [this](const Sge& sge, const RemoteMemory& remote) {
    return Run(WorkChain().Write({sge}, remote, {}), "a write");
  });
}

absl::StatusOr<uint64_t> QueueEnd::Read(const TransferRange& range) {
  return Transfer(range, request_max, [this](const Sge& sge, const RemoteMemory& remote) {
    return Run(WorkChain().Read({sge}, remote, {}), "a read");
  });
}

uint64_t MicrosecondsSince(Instant began) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Instant::clock::now() - began).count());
}

absl::Status ConnectEnds(QueueEnd& one, QueueEnd& other) {
  RNICD_RETURN_IF_ERROR(one.pair.Connect(other.pair.address()));
  return other.pair.Connect(one.pair.address());
}

}  // namespace rnicd::ctl
