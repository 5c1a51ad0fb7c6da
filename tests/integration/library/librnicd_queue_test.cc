// The C++ library's queue pairs, fast registration and windows against the real daemon: two sessions of one process.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/ndk/access_rights.h"
#include "base/ndk/op_flags.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/fast_region.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/memory_window.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/work_chain.h"
#include "tests/integration/library/librnicd_fixture.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kPages = 16;
constexpr uint64_t kBytes = kPages * kNdkPageBytes;

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::string TextAt(const Memory& memory, uint64_t offset, uint64_t count) {
  return std::string(reinterpret_cast<const char*>(memory.bytes().data()) + offset, count);
}

// A session with one completion queue, one queue pair and some memory.
struct End {
  explicit End(const DaemonProcess& daemon, const QueuePairOptions& options = {})
      : client(Must(Client::Connect({.socket_dir = daemon.socket_dir(), .label = "queues"}))),
        memory(Must(Memory::Allocate(client, {.size = kBytes}))),
        queue(Must(CompletionQueue::Create(client, 64))),
        pair(Must(QueuePair::Create(queue, queue, options))) {}

  // All requests must be accepted.
  PostOutcome Post(const WorkChain& chain) {
    PostOutcome outcome = Must(pair.Post(chain));
    EXPECT_EQ(outcome.posted, chain.size());
    EXPECT_TRUE(outcome.failure.ok()) << outcome.failure;
    return outcome;
  }
  // The next completion; a test failure on timeout.
  Completion Next() {
    const std::vector<Completion> completions = Must(queue.PollFor(1, kTimeout));
    EXPECT_EQ(completions.size(), 1u);
    return completions.empty() ? Completion{.status = NtStatus::kIoTimeout} : completions.front();
  }
  // Posts one request and waits for its completion.
  NtStatus Run(const WorkChain& chain) {
    Post(chain);
    return Next().status;
  }
  // A fast registration of all pages of the memory, last one first.
  FastRegistration Reversed(const LogicalMapping& mapping) const {
    FastRegistration registration = mapping.AsRegistration();
    std::reverse(registration.pages.begin(), registration.pages.end());
    return registration;
  }
  Client client;
  Memory memory;
  CompletionQueue queue;
  QueuePair pair;
};

void ConnectEnds(End& one, End& other) {
  EXPECT_TRUE(one.pair.Connect(other.pair.address()).ok());
  EXPECT_TRUE(other.pair.Connect(one.pair.address()).ok());
}

class LibrnicdQueues : public Librnicd {};

TEST_F(LibrnicdQueues, PeerReachesFastRegisteredPagesUntilTheyAreInvalidated) {
  End owner(daemon());
  End peer(daemon());
  ConnectEnds(owner, peer);
  const LogicalMapping mapping = Must(LogicalMapping::Build(owner.memory));
  ASSERT_EQ(mapping.pages().size(), kPages);
  const FastRegion region = Must(FastRegion::Create(owner.client, {.max_pages = kPages, .remote_access = true}));
  const FastRegistration registration = owner.Reversed(mapping);
  const PostOutcome outcome =
      owner.Post(WorkChain().FastRegister(region, registration, {.flags = kOpFlagRemoteRead | kOpFlagRemoteWrite}));
  EXPECT_EQ(owner.Next().type, OperationType::kFastRegister);
  EXPECT_EQ(Must(region.GetRemoteToken()), outcome.TokenOf(0));

  // Across a page boundary: the end of the last page of memory, then the start of the one before.
  const RemoteMemory remote{.address = {registration.base_address.value + kNdkPageBytes - 3},
                            .token = outcome.TokenOf(0)};
  EXPECT_EQ(peer.Run(WorkChain().WriteInline(BytesOf("abcdef"), remote, {})), NtStatus::kSuccess);
  EXPECT_EQ(TextAt(owner.memory, kBytes - 3, 3), "abc");
  EXPECT_EQ(TextAt(owner.memory, kBytes - 2 * kNdkPageBytes, 3), "def");

  const MemoryRegion sink = Must(MemoryRegion::Register(peer.memory, kMrFlagLocalWrite));
  const Sge sge = Sge::Of(peer.memory.bytes().first(6), sink.local_token());
  EXPECT_EQ(peer.Run(WorkChain().Read({sge}, remote, {})), NtStatus::kSuccess);
  EXPECT_EQ(TextAt(peer.memory, 0, 6), "abcdef");

  EXPECT_EQ(owner.Run(WorkChain().Invalidate(region, {})), NtStatus::kSuccess);
  EXPECT_EQ(peer.Run(WorkChain().Write({sge}, remote, {})), NtStatus::kAccessViolation);
  EXPECT_EQ(Must(peer.pair.State()), QueuePairState::kError);
  EXPECT_TRUE(Eventually([&] { return Must(owner.pair.State()) == QueuePairState::kError; }));
}

TEST_F(LibrnicdQueues, ReceiverLearnsWhichTokenItsPeerInvalidated) {
  End owner(daemon());
  End peer(daemon());
  ConnectEnds(owner, peer);
  const LogicalMapping mapping = Must(LogicalMapping::Build(owner.memory));
  const FastRegion region = Must(FastRegion::Create(owner.client, {.max_pages = kPages, .remote_access = true}));
  const PostOutcome outcome =
      owner.Post(WorkChain().FastRegister(region, mapping.AsRegistration(), {.flags = kOpFlagRemoteWrite}));
  EXPECT_TRUE(owner.Next().ok());
  owner.Post(WorkChain().Receive({}, {}));
  EXPECT_EQ(peer.Run(WorkChain().SendAndInvalidate({}, outcome.TokenOf(0), {})), NtStatus::kSuccess);
  const Completion received = owner.Next();
  EXPECT_EQ(received.type, OperationType::kReceiveAndInvalidate);
  EXPECT_EQ(received.invalidated_token, outcome.TokenOf(0));
  EXPECT_EQ(owner.Run(WorkChain().Invalidate(region, {})), NtStatus::kInvalidDeviceRequest);
}

TEST_F(LibrnicdQueues, ArmedQueueIsNotifiedOfASolicitedSendAndNotOfAPlainOne) {
  End sender(daemon());
  End receiver(daemon());
  ConnectEnds(sender, receiver);
  receiver.Post(WorkChain().Receive({}, {.context = 1}).Receive({}, {.context = 2}));
  ASSERT_TRUE(receiver.queue.Arm(CqNotifyType::kSolicited).ok());
  EXPECT_EQ(sender.Run(WorkChain().Send({}, {})), NtStatus::kSuccess);
  std::vector<Completion> plain;
  ASSERT_TRUE(Eventually([&] { return !(plain = Must(receiver.queue.Poll(16))).empty(); }));
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_EQ(plain.front().request_context, 1u);
  // Notifications come in order, and one that follows is here.
  CompletionQueue later = Must(CompletionQueue::Create(receiver.client, 1));
  QueuePair loop = Must(QueuePair::Create(later, later, {}));
  ASSERT_TRUE(loop.Connect(loop.address()).ok() && later.Arm(CqNotifyType::kAny).ok());
  EXPECT_EQ(Must(loop.Post(WorkChain().Write({}, {}, {}))).posted, 1u);
  EXPECT_TRUE(Must(later.WaitForNotification(kTimeout)));
  EXPECT_FALSE(Must(receiver.queue.WaitForNotification(kAtOnce)));
  auto notified = std::async(std::launch::async, [&] { return receiver.queue.WaitForNotification(kTimeout); });
  EXPECT_EQ(sender.Run(WorkChain().Send({}, {.flags = kOpFlagSolicit})), NtStatus::kSuccess);
  EXPECT_TRUE(Must(notified.get()));
  EXPECT_EQ(receiver.Next().request_context, 2u);
}

TEST_F(LibrnicdQueues, ChainThatCannotBeSentIsRefusedAsAWhole) {
  End end(daemon());
  ASSERT_TRUE(end.pair.Connect(end.pair.address()).ok());
  EXPECT_TRUE(FailedWith(end.pair.Post(WorkChain()).status(), ErrorReason::BATCH_SIZE));
  const absl::Status status = end.pair.Post(WorkChain().Receive({}, {}).Send({{.length = 1ull << 32}}, {})).status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::TRANSFER_TOO_LONG));
  EXPECT_EQ(ErrorInfoOf(status).field, "requests[1].send.sges");
  ASSERT_TRUE(end.pair.Flush().ok());
  EXPECT_TRUE(Must(end.queue.Poll(1)).empty()) << "the receive before it was posted";
}

// Every kind of request that names objects, in one chain. The region begins inside of its first page.
TEST_F(LibrnicdQueues, ChainIssuesATokenForEachFastRegisterAndBind) {
  End end(daemon());
  ASSERT_TRUE(end.pair.Connect(end.pair.address()).ok());
  const LogicalMapping mapping = Must(LogicalMapping::Build(end.memory, end.memory.bytes().subspan(100, 5000)));
  const FastRegion region = Must(FastRegion::Create(end.client, {.max_pages = 4, .remote_access = true}));
  const MemoryRegion normal = Must(MemoryRegion::Register(end.memory, kMrFlagLocalWrite));
  const MemoryWindow window = Must(MemoryWindow::Create(end.client));
  const FastRegistration registration = mapping.AsRegistration();
  const PostOutcome outcome =
      end.Post(WorkChain()
                   .FastRegister(region, registration, {.flags = kOpFlagRemoteWrite, .context = 1})
                   .Invalidate(region, {.context = 2})
                   .Bind(normal, window, normal.base_address(), 10, {.flags = kOpFlagRemoteRead, .context = 3})
                   .Invalidate(window, {.context = 4})
                   .FastRegister(region, registration, {.flags = kOpFlagRemoteWrite, .context = 5}));
  for (uint64_t context = 1; context <= 5; ++context) {
    const Completion completion = end.Next();
    EXPECT_TRUE(completion.ok());
    EXPECT_EQ(completion.request_context, context);
  }
  for (const size_t index : {0u, 2u, 4u}) {
    EXPECT_NE(outcome.TokenOf(index), RemoteToken{}) << index;
  }
  for (const size_t index : {1u, 3u}) {
    EXPECT_EQ(outcome.TokenOf(index), RemoteToken{}) << index;
  }
  // The last byte of the region, from the region itself: both its tokens work.
  end.memory.bytes()[100] = std::byte{'x'};
  const RemoteMemory last{.address = {registration.base_address.value + 4999}, .token = outcome.TokenOf(4)};
  EXPECT_EQ(end.Run(WorkChain().Write({Sge::At(registration.base_address, 1, region.local_token())}, last, {})),
            NtStatus::kSuccess);
  EXPECT_EQ(TextAt(end.memory, 5099, 1), "x");
  const RemoteMemory behind{.address = {registration.base_address.value + 5000}, .token = outcome.TokenOf(4)};
  EXPECT_EQ(end.Run(WorkChain().WriteInline(BytesOf("y"), behind, {})), NtStatus::kAccessViolation);
}

TEST_F(LibrnicdQueues, RefusedObjectsCarryTheirReasonAndLeaveNothing) {
  End owner(daemon());
  EXPECT_TRUE(FailedWith(FastRegion::Create(owner.client, {}).status(), ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_TRUE(FailedWith(FastRegion::Create(owner.client, {.max_pages = 1u << 20}).status(),
                         ErrorReason::PAGE_COUNT_UNSUPPORTED));
  const NdkAdapterInfo info = Must(owner.client.QueryAdapterInfo());
  EXPECT_TRUE(FailedWith(CompletionQueue::Create(owner.client, 0).status(), ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_TRUE(FailedWith(CompletionQueue::Create(owner.client, info.max_cq_depth + 1).status(),
                         ErrorReason::ABOVE_ADAPTER_LIMIT));
  const auto pair = QueuePair::Create(owner.queue, owner.queue, {.inline_data_size = info.max_inline_data_size + 1});
  EXPECT_TRUE(FailedWith(pair.status(), ErrorReason::ABOVE_ADAPTER_LIMIT));
  EXPECT_EQ(ErrorInfoOf(pair.status()).field, "inline_data_size");
  CompletionQueue queue = Must(CompletionQueue::Create(owner.client, 1));
  const CompletionQueue taken = std::move(queue);
  // NOLINTNEXTLINE(bugprone-use-after-move): that it was moved from is what is tested.
  EXPECT_EQ(ErrorInfoOf(QueuePair::Create(queue, taken, {}).status()).field, "receive_cq_id");
  EXPECT_EQ(ErrorInfoOf(QueuePair::Create(taken, queue, {}).status()).field, "initiator_cq_id");
  const End other(daemon());
  EXPECT_TRUE(FailedWith(QueuePair::Create(owner.queue, other.queue, {}).status(), ErrorReason::OBJECT_NOT_FOUND));
  EXPECT_TRUE(owner.queue.Resize(32).ok());
  EXPECT_EQ(UsedBy(owner.client, "regions"), 0u);
  EXPECT_EQ(UsedBy(owner.client, "completion_queues"), 2u);
  EXPECT_EQ(UsedBy(owner.client, "cq_entries"), 32u + 1);
  EXPECT_EQ(UsedBy(owner.client, "queue_pairs"), 1u);
}

TEST_F(LibrnicdQueues, DestructorsGiveEverythingBack) {
  const Client client = Must(Client::Connect({.socket_dir = daemon().socket_dir(), .label = "queues"}));
  End other(daemon());
  {
    const Memory memory = Must(Memory::Allocate(client, {.size = kBytes}));
    const LogicalMapping mapping = Must(LogicalMapping::Build(memory));
    const MemoryRegion region = Must(MemoryRegion::Register(memory, kMrFlagLocalWrite));
    const FastRegion fast = Must(FastRegion::Create(client, {.max_pages = kPages, .remote_access = true}));
    const MemoryWindow window = Must(MemoryWindow::Create(client));
    const CompletionQueue queue = Must(CompletionQueue::Create(client, 64));
    QueuePair pair = Must(QueuePair::Create(queue, queue, {}));
    ASSERT_TRUE(pair.Connect(other.pair.address()).ok() && other.pair.Connect(pair.address()).ok());
    // Registered, bound, and with a send that waits for a receive.
    const PostOutcome outcome =
        Must(pair.Post(WorkChain()
                           .FastRegister(fast, mapping.AsRegistration(), {.flags = kOpFlagRemoteWrite})
                           .Bind(region, window, region.base_address(), 1, {})
                           .Send({}, {})));
    EXPECT_EQ(outcome.posted, 3u) << outcome.failure;
  }
  // A thread of the client may be the last that has the queue's file mapped.
  const auto lingers = [](const ResourceUse& use) { return use.name == "lingering_bytes" && use.used > 0; };
  EXPECT_TRUE(Eventually([&] { return std::ranges::none_of(Must(client.GetSession()).resources, lingers); }));
  for (const ResourceUse& use : Must(client.GetSession()).resources) {
    // Heap bytes are those of what stays; a ring belongs to the connection.
    const bool stays = use.name == "adapters" || use.name == "protection_domains" || use.name == "sessions" ||
                       use.name == "rings" || use.name == "heap_bytes";
    EXPECT_EQ(use.used, stays ? use.used : 0u) << use.name;
  }
}

TEST_F(LibrnicdQueues, QueuesMayGoBeforeTheirQueuePair) {
  const Client client = Must(Client::Connect({.socket_dir = daemon().socket_dir(), .label = "queues"}));
  std::optional<CompletionQueue> dropped = Must(CompletionQueue::Create(client, 64));
  CompletionQueue closed = Must(CompletionQueue::Create(client, 64));
  std::optional<QueuePair> pair = Must(QueuePair::Create(*dropped, closed, {}));
  dropped.reset();
  EXPECT_TRUE(closed.Close().ok());
  EXPECT_EQ(Must(pair->State()), QueuePairState::kInit);
  pair.reset();
  EXPECT_TRUE(Eventually([&] {
    const SessionUse use = Must(client.GetSession());
    return std::none_of(use.resources.begin(), use.resources.end(), [](const ResourceUse& resource) {
      return resource.name == "completion_queues" && resource.used != 0;
    });
  }));
}

TEST_F(LibrnicdQueues, OverrunQueueSaysSoToPollAndWaiter) {
  const Client client = Must(Client::Connect({.socket_dir = daemon().socket_dir(), .label = "queues"}));
  CompletionQueue queue = Must(CompletionQueue::Create(client, 1));
  QueuePair pair = Must(QueuePair::Create(queue, queue, {}));
  EXPECT_TRUE(pair.Connect(pair.address()).ok());
  ASSERT_TRUE(queue.Arm(CqNotifyType::kErrors).ok());
  EXPECT_EQ(Must(pair.Post(WorkChain().Receive({}, {}).Send({}, {}))).posted, 2u);
  EXPECT_TRUE(FailedWith(queue.WaitForNotification(kTimeout).status(), ErrorReason::CQ_OVERRUN));
  EXPECT_TRUE(FailedWith(queue.WaitForNotification(kTimeout).status(), ErrorReason::CQ_OVERRUN)) << "once for all";
  EXPECT_TRUE(FailedWith(queue.Poll(1).status(), ErrorReason::CQ_OVERRUN));
  EXPECT_TRUE(FailedWith(queue.PollFor(1, kTimeout).status(), ErrorReason::CQ_OVERRUN));
}

TEST_F(LibrnicdQueues, EndOfTheSessionWakesWhoeverWaits) {
  End end(daemon());
  auto waited = std::async(std::launch::async, [&] { return end.queue.WaitForNotification(kTimeout); });
  ASSERT_TRUE(end.client.Close().ok());
  EXPECT_TRUE(FailedWith(waited.get().status(), ErrorReason::SESSION_ENDING));
  EXPECT_FALSE(end.pair.State().ok());
}

TEST_F(LibrnicdQueues, DisconnectionCallsBackAndTheCallbackMayDropThePair) {
  End owner(daemon());
  std::promise<void> told;
  std::optional<QueuePair> pair = Must(QueuePair::Create(owner.queue, owner.queue, {.on_disconnected = [&] {
                                                           pair.reset();
                                                           told.set_value();
                                                         }}));
  {
    End peer(daemon());
    EXPECT_TRUE(pair->Connect(peer.pair.address()).ok() && peer.pair.Connect(pair->address()).ok());
  }
  ASSERT_EQ(told.get_future().wait_for(kTimeout), std::future_status::ready);
  EXPECT_EQ(UsedBy(owner.client, "queue_pairs"), 1u);
}

TEST_F(LibrnicdQueues, ClosedOrMovedFromPairRefusesEveryCall) {
  End end(daemon());
  QueuePair taken = std::move(end.pair);
  EXPECT_TRUE(taken.Close().ok());
  EXPECT_EQ(UsedBy(end.client, "queue_pairs"), 0u);
  for (QueuePair* gone : {&end.pair, &taken}) {
    EXPECT_EQ(gone->id(), QueuePairId{});
    EXPECT_TRUE(gone->address().empty());
    EXPECT_TRUE(FailedWith(gone->State().status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Connect("x"), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Disconnect(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Flush(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Post(WorkChain().Send({}, {})).status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Close(), ErrorReason::OBJECT_NOT_FOUND));
  }
}

}  // namespace
}  // namespace rnicd::test
