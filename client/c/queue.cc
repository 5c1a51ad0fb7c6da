#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>

#include "base/ndk/completion.h"
#include "client/c/chain.h"
#include "client/c/handles.h"
#include "client/c/sized.h"

using rnicd::c::CheckGiven;
using rnicd::c::CloseHandle;
using rnicd::c::Give;
using rnicd::c::Run;

namespace rnicd::c {
namespace {

rnicd_completion ToC(const Completion& completion) {
  return {.context = completion.request_context,
          .qp_context = completion.qp_context,
          .qp_id = completion.queue_pair.value,
          .request_number = completion.request_number,
          .ntstatus = static_cast<uint32_t>(completion.status),
          .reason = static_cast<uint32_t>(completion.reason),
          .bytes = completion.bytes,
          .invalidated_token = completion.invalidated_token.value,
          .operation = static_cast<uint32_t>(completion.type)};
}

// Takes completions some at a time, so that none are allocated. `first` polls for the first of them.
template <typename First>
absl::StatusOr<int> PollTo(CompletionQueue& queue, std::span<rnicd_completion> to, const First& first) {
  constexpr size_t kSome = 128;
  // Without initial values, which would take longer than a poll that finds nothing.
  static_assert(std::is_trivially_copyable_v<Completion>);
  alignas(Completion) std::array<std::byte, kSome * sizeof(Completion)> storage;
  const std::span<Completion> some(std::launder(reinterpret_cast<Completion*>(storage.data())), kSome);
  size_t taken = 0;
  for (bool more = true; more && taken < to.size();) {
    const std::span<Completion> room = some.first(std::min(kSome, to.size() - taken));
    const absl::StatusOr<size_t> count = taken == 0 ? first(room) : queue.Poll(room);
    if (!count.ok()) {
      if (taken == 0) {
        return count.status();
      }
      break;  // The next poll fails with it.
    }
    std::transform(room.begin(), room.begin() + static_cast<ptrdiff_t>(*count), to.subspan(taken).begin(), ToC);
    taken += *count;
    more = *count == room.size();
  }
  return static_cast<int>(taken);
}

// The body of both posts: `post` returns an outcome for the requests.
template <typename Post>
int PostBy(rnicd_qp* qp, rnicd_chain* chain, const Post& post) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("qp", qp, "chain", chain));
    chain->requests.SetOutcome({});
    RNICD_ASSIGN_OR_RETURN(PostOutcome outcome, post(chain->requests.all()));
    const absl::Status failure = outcome.failure;
    chain->requests.SetOutcome(std::move(outcome));
    return failure;
  });
}

uint32_t Or(uint32_t given, uint32_t otherwise) { return given != 0 ? given : otherwise; }

// Errors: FIELD_OUT_OF_RANGE.
absl::StatusOr<QueuePairOptions> QueuePairOptionsOf(const rnicd_qp_options* given) {
  RNICD_ASSIGN_OR_RETURN(const rnicd_qp_options options, TakeOptional(given, "options"));
  RNICD_RETURN_IF_ERROR(CheckFlags(options.flags, RNICD_QP_FLUSH_WITH_PEER, "options.flags"));
  QueuePairOptions own;
  own.flush_with_peer = options.flags != 0;
  own.receive_queue_depth = Or(options.receive_queue_depth, own.receive_queue_depth);
  own.initiator_queue_depth = Or(options.initiator_queue_depth, own.initiator_queue_depth);
  own.max_receive_request_sge = Or(options.max_receive_request_sge, own.max_receive_request_sge);
  own.max_initiator_request_sge = Or(options.max_initiator_request_sge, own.max_initiator_request_sge);
  own.inline_data_size = Or(options.inline_data_size, own.inline_data_size);
  own.qp_context = options.qp_context;
  if (options.on_disconnected != nullptr) {
    own.on_disconnected = [call = options.on_disconnected, context = options.context] { call(context); };
  }
  return own;
}

}  // namespace
}  // namespace rnicd::c

int rnicd_create_cq(rnicd_session* session, uint32_t depth, uint32_t depth_max, rnicd_cq** cq) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "cq", cq));
    return Give(rnicd::CompletionQueue::Create(session->object, {.depth = depth, .depth_max = depth_max}), cq);
  });
}

int rnicd_poll_cq(rnicd_cq* cq, rnicd_completion* completions, uint32_t max) {
  return Run([&]() -> absl::StatusOr<int> {
    RNICD_RETURN_IF_ERROR(CheckGiven("cq", cq, "completions", completions));
    return rnicd::c::PollTo(cq->object, std::span(completions, max), [&](auto room) { return cq->object.Poll(room); });
  });
}

int rnicd_poll_cq_for(rnicd_cq* cq, rnicd_completion* completions, uint32_t max, int timeout_ms) {
  return Run([&]() -> absl::StatusOr<int> {
    RNICD_RETURN_IF_ERROR(CheckGiven("cq", cq, "completions", completions));
    return rnicd::c::PollTo(cq->object, std::span(completions, max),
                            [&](auto room) { return cq->object.PollFor(room, rnicd::c::WaitOf(timeout_ms)); });
  });
}

int rnicd_arm_cq(rnicd_cq* cq, rnicd_notify type) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("cq", cq));
    if (static_cast<uint32_t>(type) > RNICD_NOTIFY_SOLICITED) {
      return rnicd::MakeError(rnicd::ErrorReason::FIELD_OUT_OF_RANGE, "type");
    }
    return cq->object.Arm(static_cast<rnicd::CqNotifyType>(type));
  });
}

int rnicd_wait_cq(rnicd_cq* cq, int timeout_ms) {
  return Run([&]() -> absl::StatusOr<int> {
    RNICD_RETURN_IF_ERROR(CheckGiven("cq", cq));
    RNICD_ASSIGN_OR_RETURN(const bool notified, cq->object.WaitForNotification(rnicd::c::WaitOf(timeout_ms)));
    return notified ? 1 : 0;
  });
}

int rnicd_resize_cq(rnicd_cq* cq, uint32_t depth) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("cq", cq));
    return cq->object.Resize(depth);
  });
}

int rnicd_cq_fd(rnicd_cq* cq) {
  return Run([&]() -> absl::StatusOr<int> {
    RNICD_RETURN_IF_ERROR(CheckGiven("cq", cq));
    return cq->object.Descriptor();
  });
}

int rnicd_prepare_cq(rnicd_cq* cq) {
  return Run([&]() -> absl::StatusOr<int> {
    RNICD_RETURN_IF_ERROR(CheckGiven("cq", cq));
    RNICD_ASSIGN_OR_RETURN(const bool may_sleep, cq->object.PrepareToWait());
    return may_sleep ? 1 : 0;
  });
}

int rnicd_stop_cq(rnicd_cq* cq) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("cq", cq));
    cq->object.StopWaiting();
    return absl::OkStatus();
  });
}

int rnicd_close_cq(rnicd_cq* cq) {
  return CloseHandle(cq, [](rnicd::CompletionQueue& queue) { return queue.Close(); });
}

int rnicd_create_qp(rnicd_cq* receive_cq, rnicd_cq* initiator_cq, const rnicd_qp_options* options, rnicd_qp** qp) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("receive_cq", receive_cq, "initiator_cq", initiator_cq, "qp", qp));
    RNICD_ASSIGN_OR_RETURN(const rnicd::QueuePairOptions own, rnicd::c::QueuePairOptionsOf(options));
    return Give(rnicd::QueuePair::Create(receive_cq->object, initiator_cq->object, own), qp);
  });
}

int rnicd_query_qp(const rnicd_qp* qp, rnicd_qp_info* info) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("qp", qp));
    const std::string& address = qp->object.address();
    rnicd_qp_info own = {.size = sizeof(own), .id = qp->object.id().value, .address = {}, .reserved = 0};
    own.address_bytes = static_cast<uint32_t>(std::min(address.size(), sizeof(own.address)));
    std::memcpy(own.address, address.data(), own.address_bytes);
    return rnicd::c::Fill(own, info, "info");
  });
}

int rnicd_qp_state(rnicd_qp* qp) {
  return Run([&]() -> absl::StatusOr<int> {
    RNICD_RETURN_IF_ERROR(CheckGiven("qp", qp));
    RNICD_ASSIGN_OR_RETURN(const rnicd::QueuePairState state, qp->object.State());
    return static_cast<int>(state);
  });
}

int rnicd_connect_qp(rnicd_qp* qp, const void* peer_address, size_t address_bytes) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("qp", qp, "peer_address", peer_address));
    return qp->object.Connect(std::string_view(static_cast<const char*>(peer_address), address_bytes));
  });
}

int rnicd_disconnect_qp(rnicd_qp* qp) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("qp", qp));
    return qp->object.Disconnect();
  });
}

int rnicd_flush_qp(rnicd_qp* qp) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("qp", qp));
    return qp->object.Flush();
  });
}

int rnicd_close_qp(rnicd_qp* qp) {
  return CloseHandle(qp, [](rnicd::QueuePair& pair) { return pair.Close(); });
}

int rnicd_post(rnicd_qp* qp, rnicd_chain* chain) {
  return rnicd::c::PostBy(qp, chain, [&](auto requests) { return qp->object.Post(requests); });
}

int rnicd_post_without_outcome(rnicd_qp* qp, rnicd_chain* chain) {
  return rnicd::c::PostBy(qp, chain, [&](auto requests) -> absl::StatusOr<rnicd::PostOutcome> {
    RNICD_RETURN_IF_ERROR(qp->object.PostWithoutOutcome(requests));
    return rnicd::PostOutcome{.posted = static_cast<uint32_t>(requests.size())};
  });
}

int rnicd_query_outstanding(const rnicd_qp* qp, rnicd_outstanding* outstanding) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("qp", qp, "outstanding", outstanding));
    const rnicd::OutstandingRequests own = qp->object.Outstanding();
    *outstanding = {.initiator = own.initiator, .receive = own.receive};
    return absl::OkStatus();
  });
}
