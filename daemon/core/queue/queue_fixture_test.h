#pragma once

// Shared fixture of the queues' unit tests: an owner with an adapter, a domain and a completion queue, and short ways
// to write work requests.

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/ndk/op_flags.h"
#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {

// The address where Owner::Register puts the first byte of a region.
inline constexpr uint64_t kRegionBase = 0x7f0000000000;
inline constexpr uint32_t kRemoteRights = kOpFlagRemoteRead | kOpFlagRemoteWrite;
inline constexpr QueuePairLimits kSmallLimits{
    .receive_depth = 4, .initiator_depth = 4, .receive_entries = 2, .initiator_entries = 2, .inline_bytes = 64};

// An SGE of a region that Owner::Register made.
inline Sge SgeOf(LocalToken token, uint32_t length, uint64_t offset = 0) {
  return {.address = kRegionBase + offset, .length = length, .token = token};
}
inline Sge InlineSge(std::string_view bytes) { return Sge::Inline(std::as_bytes(std::span(bytes))); }

inline WorkRequest Send(Sges sges = {}, uint32_t flags = 0, uint64_t context = 0) {
  return {.request_context = context, .flags = flags, .operation = WorkRequest::Send{std::move(sges)}};
}
inline WorkRequest SendAndInvalidate(RemoteToken token, uint64_t context = 0) {
  return {.request_context = context, .operation = WorkRequest::SendAndInvalidate{.sges = {}, .token = token}};
}
inline WorkRequest Receive(Sges sges = {}, uint64_t context = 0) {
  return {.request_context = context, .operation = WorkRequest::Receive{std::move(sges)}};
}
inline WorkRequest Read(Sges sges, uint64_t address, RemoteToken token, uint32_t flags = 0) {
  return {.flags = flags,
          .operation = WorkRequest::Read{.sges = std::move(sges), .remote = {.address = {address}, .token = token}}};
}
inline WorkRequest Write(Sges sges, uint64_t address, RemoteToken token, uint32_t flags = 0) {
  return {.flags = flags,
          .operation = WorkRequest::Write{.sges = std::move(sges), .remote = {.address = {address}, .token = token}}};
}
inline WorkRequest Invalidate(MemoryRegionId region) { return {.operation = WorkRequest::Invalidate{region}}; }
inline WorkRequest Invalidate(MemoryWindowId window) { return {.operation = WorkRequest::Invalidate{window}}; }
inline WorkRequest Bind(MemoryRegionId region, MemoryWindowId window, uint64_t length = kPage, uint32_t flags = 0,
                        uint64_t offset = 0) {
  return {.flags = flags,
          .operation = WorkRequest::Bind{
              .region = region, .window = window, .address = {kRegionBase + offset}, .length = length}};
}
// Registers all of `pages` from their first byte on; the array must outlive the request.
inline WorkRequest FastRegister(MemoryRegionId region, const std::vector<uint64_t>& pages, uint32_t flags = 0,
                                uint64_t context = 0) {
  return {.request_context = context,
          .flags = flags,
          .operation = WorkRequest::FastRegister{
              .region = region, .pages = pages, .length = pages.size() * kPage, .base_address = {kRegionBase}}};
}

inline std::vector<uint64_t> PagesOf(const BuiltLam& lam) {
  std::vector<uint64_t> pages;
  for (uint64_t index = 0; index < lam.pages; ++index) {
    pages.push_back(lam.first.value + index * kPage);
  }
  return pages;
}

class QueueOwner : public Owner {
 public:
  explicit QueueOwner(World& world, uint64_t number = 1, uint32_t depth = 64, uint32_t uid = 1000)
      : Owner(world, number, uid), adapter(Adapter()), domain(Domain(adapter)), queue(Queue(depth)) {}

  CompletionQueueId Queue(uint32_t depth = 64, uint64_t context = 0) {
    const auto id = session->Begin()->queues().Create(adapter, depth, context);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(CompletionQueueId{});
  }
  CreateQpArguments PairArguments(uint64_t context = 0) const {
    return {
        .domain = domain, .receive_queue = queue, .initiator_queue = queue, .context = context, .limits = kSmallLimits};
  }
  QueuePairId Pair(uint64_t context = 0) { return Pair(PairArguments(context)); }
  QueuePairId Pair(const CreateQpArguments& arguments) {
    const auto id = session->Begin()->pairs().Create(arguments);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(QueuePairId{});
  }
  std::string Address(QueuePairId pair) {
    const auto view = session->Begin()->pairs().Query(pair);
    EXPECT_TRUE(view.ok()) << view.status();
    return view.ok() ? view->address : "";
  }
  QueuePairState State(QueuePairId pair) {
    const auto view = session->Begin()->pairs().Query(pair);
    EXPECT_TRUE(view.ok()) << view.status();
    return view.ok() ? view->state : QueuePairState::kInit;
  }
  MemoryRegionId FastRegion(uint32_t pages = 4, bool remote_access = true) {
    const MemoryRegionId region = NewFastRegion();
    EXPECT_TRUE(Initialize(region, pages, remote_access).ok());
    return region;
  }
  MemoryRegionId NewFastRegion() {
    const auto id = session->Begin()->regions().Create(domain, true);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(MemoryRegionId{});
  }
  absl::Status Initialize(MemoryRegionId region, uint32_t pages, bool remote_access) {
    return Await([&](const Done<>& done) -> MaybePending<> {
      RNICD_ASSIGN_OR_RETURN(const SessionGuard held, session->Begin());
      return held.regions().Initialize({.region = region, .max_pages = pages, .remote_access = remote_access}, {},
                                       done);
    });
  }
  absl::StatusOr<BuiltLam> TryLam(MemoryObjectId memory, uint64_t bytes, uint64_t offset = 0) {
    const MdlEntry entry{
        .memory_id = memory, .byte_offset = offset, .byte_count = bytes, .virtual_address = {kRegionBase + offset}};
    return session->Begin()->mappings().Build({.adapter = adapter, .chain = {&entry, 1}, .length = bytes});
  }
  BuiltLam Lam(MemoryObjectId memory, uint64_t pages) {
    const auto lam = TryLam(memory, pages * kPage);
    EXPECT_TRUE(lam.ok()) << lam.status();
    return lam.value_or(BuiltLam{});
  }
  MemoryWindowId Window() {
    const auto id = session->Begin()->windows().Create(domain);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(MemoryWindowId{});
  }
  // A region registered over `pages` of fresh memory.
  MemoryRegionId RegisteredRegion(uint64_t pages = 1) {
    const MemoryRegionId region = Region(domain);
    const auto registered = Register(region, Memory(pages), pages * kPage);
    EXPECT_TRUE(registered.ok()) << registered.status();
    return region;
  }

  PostOutcome Post(QueuePairId pair, const std::vector<WorkRequest>& requests) {
    const auto outcome = session->Begin()->pairs().Post(pair, requests);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.value_or(PostOutcome{});
  }
  // Expects that all requests are accepted; returns the token of the first request that has one.
  RemoteToken MustPost(QueuePairId pair, const std::vector<WorkRequest>& requests) {
    const PostOutcome outcome = Post(pair, requests);
    EXPECT_TRUE(outcome.failure.ok()) << ErrorInfoOf(outcome.failure).field << " " << outcome.failure;
    EXPECT_EQ(outcome.posted, requests.size());
    return outcome.issued_tokens.empty() ? RemoteToken{} : outcome.issued_tokens.front().remote_token;
  }
  std::vector<Completion> Results() { return Results(queue); }
  std::vector<Completion> Results(CompletionQueueId id) {
    const auto results = session->Begin()->queues().GetResults(id, 1000);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.value_or(std::vector<Completion>{});
  }
  // The status of each completion, in order.
  std::vector<NtStatus> Statuses() {
    std::vector<NtStatus> statuses;
    for (const Completion& result : Results()) {
      statuses.push_back(result.status);
    }
    return statuses;
  }
  // The next event, which must be of that kind and queued already.
  template <typename Body>
  Body NextEvent() {
    const auto event = session->events().Pop();
    const Body* const body = event.has_value() ? std::get_if<Body>(&event->body) : nullptr;
    EXPECT_NE(body, nullptr);
    return body != nullptr ? *body : Body{};
  }
  bool HasNoEvent() { return !session->events().Pop().has_value(); }

  absl::Status ClosePair(QueuePairId pair) {
    return Await([&](const Done<>& done) -> MaybePending<> {
      RNICD_ASSIGN_OR_RETURN(const SessionGuard held, session->Begin());
      return held.pairs().Close(pair, {}, done);
    });
  }
  absl::Status CloseWindow(MemoryWindowId window) {
    return Await([&](const Done<>& done) -> MaybePending<> {
      RNICD_ASSIGN_OR_RETURN(const SessionGuard held, session->Begin());
      return held.windows().Close(window, {}, done);
    });
  }
  absl::Status CloseQueue(CompletionQueueId id) {
    return Await([&](const Done<>& done) -> MaybePending<> {
      RNICD_ASSIGN_OR_RETURN(const SessionGuard held, session->Begin());
      return held.queues().Close(id, {}, done);
    });
  }

  const AdapterId adapter;
  const ProtectionDomainId domain;
  const CompletionQueueId queue;
};

// Calls ConnectQp on both sides.
inline void ConnectPairs(QueueOwner& first, QueuePairId first_pair, QueueOwner& second, QueuePairId second_pair) {
  EXPECT_TRUE(first.session->Begin()->pairs().Connect(first_pair, second.Address(second_pair)).ok());
  EXPECT_TRUE(second.session->Begin()->pairs().Connect(second_pair, first.Address(first_pair)).ok());
}

// An owner and its peer, each with a queue pair, connected.
struct Connected {
  explicit Connected(const WorldOptions& options = {}) : world(options) { ConnectPairs(owner, pair, peer, peer_pair); }

  World world;
  QueueOwner owner{world, 1};
  QueueOwner peer{world, 2};
  QueuePairId pair = owner.Pair(/*context=*/71);
  QueuePairId peer_pair = peer.Pair(/*context=*/72);
};

// Chains in which one request is refused.
class PostTest : public ::testing::Test, protected Connected {
 protected:
  explicit PostTest(const WorldOptions& options = {}) : Connected(options) {}

  // Posts the request between two that are sound: the first must be posted and executed, the others must have no
  // effect, and no count and no token may have changed.
  void ExpectRefused(const WorkRequest& request, ErrorReason reason, const std::string& field) {
    SCOPED_TRACE("operation " + std::to_string(request.operation.index()) + ", flags " + std::to_string(request.flags) +
                 ", " + std::string(RowOf(reason).name));
    const std::string held = world.Held();
    const std::vector<RemoteToken> tokens = Tokens();
    const PostOutcome outcome = owner.Post(pair, {Receive({}, 1), request, Receive({}, 2)});
    EXPECT_EQ(outcome.posted, 1u);
    EXPECT_THAT(outcome.failure, FailsAt(reason, "requests[1]" + (field.empty() ? "" : "." + field)));
    EXPECT_TRUE(outcome.issued_tokens.empty());
    EXPECT_EQ(world.Held(), held);
    EXPECT_EQ(Tokens(), tokens);
    peer.MustPost(peer_pair, {Send()});
    EXPECT_EQ(peer.Statuses(), std::vector<NtStatus>{NtStatus::kSuccess});
    const std::vector<Completion> results = owner.Results();
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].request_context, 1u);
    EXPECT_EQ(results[0].status, NtStatus::kSuccess);
  }
  // Every token a request could change.
  std::vector<RemoteToken> Tokens() {
    std::vector<RemoteToken> tokens;
    for (const MemoryRegionId region : watched_regions) {
      tokens.push_back(owner.session->Begin()->regions().GetRemoteToken(region).value_or(RemoteToken{}));
    }
    for (const MemoryWindowId window : watched_windows) {
      tokens.push_back(owner.session->Begin()->windows().GetRemoteToken(window).value_or(RemoteToken{}));
    }
    return tokens;
  }

  std::vector<MemoryRegionId> watched_regions;
  std::vector<MemoryWindowId> watched_windows;
};

}  // namespace rnicd::core
