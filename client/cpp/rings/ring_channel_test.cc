#include "client/cpp/rings/ring_channel.h"

#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <map>
#include <thread>
#include <vector>

#include "base/status.h"
#include "client/cpp/rings/scripted_ring_test.h"
#include "client/cpp/transport_failure.h"
#include "gtest/gtest.h"
#include "ring/chain.h"

namespace rnicd::inline client {
namespace {

using std::chrono::milliseconds;
using Executed = std::optional<absl::StatusOr<RingReply>>;

constexpr uint32_t kEntries = 4;

// A request whose payload is its length.
Executed Execute(RingChannel& channel, uint64_t length) {
  const RingRequest request{.entry = {.length = length}, .payload_bytes = sizeof(length)};
  return channel.Execute(request, [length](std::byte* to) { std::memcpy(to, &length, sizeof(length)); });
}

std::future<Executed> ExecuteLater(RingChannel& channel, uint64_t length) {
  return std::async(std::launch::async, [&channel, length] { return Execute(channel, length); });
}

uint32_t TokenOf(const Executed& executed) {
  return executed.has_value() && executed->ok() ? (*executed)->outcome.local_token : 0;
}

uint64_t PayloadOf(ScriptedRing& ring, const ring::Submission& entry) {
  std::array<uint64_t, 1> word = {};
  ring.end().CopyPayload(entry.payload_offset, entry.payload_bytes, word);
  return word[0];
}

TEST(RingChannel, CarriesARequestItsPayloadAndItsOutcome) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  std::future<Executed> executed = ExecuteLater(*channel, 77);
  const ring::Submission entry = ring.Take();
  EXPECT_EQ(entry.length, 77U);
  EXPECT_EQ(PayloadOf(ring, entry), 77U);
  // The client rings after it has published the entry.
  uint64_t doorbells = ring.Doorbells();
  while (doorbells == 0 && executed.wait_for(milliseconds(1)) == std::future_status::timeout) {
    doorbells = ring.Doorbells();
  }
  EXPECT_EQ(doorbells, 1U) << "the daemon was asleep";
  ring.end().StayAwake();
  ring.Complete(entry, 5);
  EXPECT_EQ(TokenOf(executed.get()), 5U);
  executed = ExecuteLater(*channel, 78);
  ring.Complete(ring.Take(), 6);
  EXPECT_EQ(TokenOf(executed.get()), 6U);
  EXPECT_EQ(ring.Doorbells(), 0U) << "and is awake now";
}

bool Send(RingChannel& channel, uint64_t length) {
  const RingRequest request{.entry = {.opcode = ring::Opcode::kPost, .flags = ring::kFlagNoOutcome, .length = length}};
  return channel.Send(request, [](std::byte*) {}).value_or(false);
}

TEST(RingChannel, SendsWithoutWaitingWhileThereIsRoom) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  for (uint64_t length = 0; length < 100; ++length) {
    ASSERT_TRUE(Send(*channel, length));
    const ring::Submission entry = ring.TakeWithoutOutcome();
    EXPECT_EQ(entry.length, length);
    EXPECT_EQ(entry.result_bytes, 0U);
  }
}

// All slots but one are in use; the last is for a Nop, whose outcome wakes the thread that waits.
TEST(RingChannel, AThreadThatWaitsForRoomIsWokenByTheOutcomeOfANop) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  for (uint32_t sent = 0; sent < kEntries - 1; ++sent) {
    ASSERT_TRUE(Send(*channel, sent));
  }
  auto waiting = std::async(std::launch::async, [&] { return Send(*channel, 77); });
  const ring::Submission nop = ring.TakeNth(kEntries);
  EXPECT_EQ(nop.opcode, ring::Opcode::kNop);
  ring.Complete(nop, 0);
  EXPECT_TRUE(waiting.get());
  EXPECT_EQ(ring.TakeWithoutOutcome().length, 77U);
}

TEST(RingChannel, AwaitsWhatWasSentByANop) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  EXPECT_TRUE(channel->AwaitSent(milliseconds(0)).ok()) << "nothing was sent";
  ASSERT_TRUE(Send(*channel, 1));
  auto waiting = std::async(std::launch::async, [&] { return channel->AwaitSent(std::chrono::seconds(20)); });
  ring.TakeWithoutOutcome();
  const ring::Submission nop = ring.Take();
  EXPECT_EQ(nop.opcode, ring::Opcode::kNop);
  ring.Complete(nop, 0);
  EXPECT_TRUE(waiting.get().ok());
  EXPECT_TRUE(channel->AwaitSent(milliseconds(0)).ok()) << "nothing was sent since";
}

TEST(RingChannel, NothingIsSentThroughARingThatHasEnded) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  ASSERT_TRUE(Send(*channel, 1));
  ring.end().End(static_cast<uint32_t>(ErrorReason::RING_BROKEN));
  EXPECT_FALSE(Send(*channel, 2));
  EXPECT_TRUE(FailedWith(channel->AwaitSent(std::chrono::seconds(20)), ErrorReason::RING_BROKEN));
}

// A chain of writes without a payload.
bool SendChain(RingChannel& channel, uint64_t pair, std::vector<uint64_t> contexts) {
  std::vector<std::byte> payload;
  for (const uint64_t context : contexts) {
    const WorkRequest write{.request_context = context, .operation = WorkRequest::Write{}};
    const size_t begin = payload.size();
    payload.resize(begin + *ring::EncodedBytes(write));
    ring::Encode(write, payload.data() + begin);
  }
  const RingRequest request{.entry = {.opcode = ring::Opcode::kPost,
                                      .flags = ring::kFlagNoOutcome,
                                      .count = static_cast<uint32_t>(contexts.size()),
                                      .object = pair},
                            .payload_bytes = payload.size()};
  return channel.Send(request, [&](std::byte* to) { std::ranges::copy(payload, to); }).value_or(false);
}

TEST(RingChannel, ReportsOnceWhatItHasLost) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  for (const uint64_t context : {10, 20, 30}) {
    ASSERT_TRUE(SendChain(*channel, 7, {context, context + 1}));
  }
  ring.TakeWithoutOutcome();
  EXPECT_TRUE(channel->TakeLost().empty()) << "the ring goes on";
  ring.end().End(static_cast<uint32_t>(ErrorReason::RING_BROKEN));
  std::vector<uint64_t> contexts;
  for (const Completion& lost : channel->TakeLost()) {
    EXPECT_EQ(lost.status, NtStatus::kCancelled);
    EXPECT_EQ(lost.type, OperationType::kWrite);
    EXPECT_EQ(lost.queue_pair, QueuePairId{7});
    contexts.push_back(lost.request_context);
  }
  EXPECT_EQ(contexts, (std::vector<uint64_t>{20, 21, 30, 31}));
  EXPECT_TRUE(channel->TakeLost().empty());
  EXPECT_TRUE(channel->AwaitSent(milliseconds(0)).ok()) << "nothing is awaited any more";
}

TEST(RingChannel, LosesNothingThatTheDaemonHasTaken) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  ASSERT_TRUE(SendChain(*channel, 7, {10}));
  ring.TakeWithoutOutcome();
  ring.end().End(static_cast<uint32_t>(ErrorReason::RING_BROKEN));
  EXPECT_TRUE(channel->TakeLost().empty());
}

TEST(RingChannel, GivesEachThreadItsOwnOutcomeWhateverTheOrder) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  std::map<uint64_t, std::future<Executed>> executed;
  std::vector<ring::Submission> entries;
  for (uint64_t length = 1; length <= kEntries; ++length) {
    executed.emplace(length, ExecuteLater(*channel, length));
    entries.push_back(ring.Take());
  }
  for (const size_t index : {2, 0, 3, 1}) {
    ring.Complete(entries[index], 100 + static_cast<uint32_t>(entries[index].length));
    EXPECT_EQ(TokenOf(executed[entries[index].length].get()), 100 + entries[index].length);
  }
}

TEST(RingChannel, ServesManyThreadsThatAlwaysHaveARequest) {
  constexpr uint32_t kThreads = 6;
  constexpr uint32_t kRequests = 200;
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  std::thread daemon([&] {
    for (uint32_t taken = 0; taken < kThreads * kRequests;) {
      // All that are there, the last one first.
      std::vector<ring::Submission> entries = {ring.Take()};
      ring::Submission entry;
      while (ring.end().Peek(&entry) == ring::DaemonEnd::Next::kEntry) {
        ring.end().Pop();
        entries.push_back(entry);
      }
      taken += static_cast<uint32_t>(entries.size());
      for (; !entries.empty(); entries.pop_back()) {
        EXPECT_EQ(PayloadOf(ring, entries.back()), entries.back().length);
        ring.Complete(entries.back(), static_cast<uint32_t>(entries.back().length));
      }
    }
  });
  std::atomic<uint32_t> wrong = 0;
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint32_t index = 0; index < kRequests; ++index) {
        const uint32_t length = 1 + thread * kRequests + index;
        wrong += TokenOf(Execute(*channel, length)) != length ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  daemon.join();
  EXPECT_EQ(wrong, 0U);
}

TEST(RingChannel, WaitsForRoomWhereTheRingIsFull) {
  ScriptedRing ring(2);
  const auto channel = ring.Open();
  std::vector<std::future<Executed>> executed;
  std::vector<ring::Submission> entries;
  for (uint64_t length = 1; length <= 2; ++length) {
    executed.push_back(ExecuteLater(*channel, length));
    entries.push_back(ring.Take());
  }
  std::future<Executed> third = ExecuteLater(*channel, 3);
  EXPECT_EQ(third.wait_for(milliseconds(50)), std::future_status::timeout);
  ring::Submission none;
  EXPECT_EQ(ring.end().Peek(&none), ring::DaemonEnd::Next::kNothing);
  ring.Complete(entries[0], 1);
  const ring::Submission entry = ring.Take();
  EXPECT_EQ(entry.length, 3U);
  ring.Complete(entry, 3);
  EXPECT_EQ(TokenOf(third.get()), 3U);
  ring.Complete(entries[1], 2);
  EXPECT_EQ(TokenOf(executed[0].get()), 1U);
  EXPECT_EQ(TokenOf(executed[1].get()), 2U);
}

TEST(RingChannel, LeavesWhatIsLargerThanTheRingToACall) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  const RingRequest request{.entry = {}, .payload_bytes = 1U << 20};
  EXPECT_FALSE(channel->Execute(request, [](std::byte*) { FAIL(); }).has_value());
  EXPECT_TRUE(channel->ended().ok());
}

TEST(RingChannel, FailsWhatIsUnderWayWhenTheRingEnds) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  std::future<Executed> completed = ExecuteLater(*channel, 1);
  const ring::Submission first = ring.Take();
  std::future<Executed> lost = ExecuteLater(*channel, 2);
  ring.Take();
  // The outcome was written before the end: it counts.
  ring.Complete(first, 9);
  ring.end().End(static_cast<uint32_t>(ErrorReason::RING_BROKEN));
  EXPECT_EQ(TokenOf(completed.get()), 9U);
  const Executed failed = lost.get();
  ASSERT_TRUE(failed.has_value());
  EXPECT_TRUE(FailedWith(failed->status(), ErrorReason::RING_BROKEN));
  EXPECT_FALSE(Execute(*channel, 3).has_value()) << "calls from now on";
  EXPECT_TRUE(FailedWith(channel->ended(), ErrorReason::RING_BROKEN));
}

TEST(RingChannel, FailsThreadsThatWaitWhenTheSessionIsLost) {
  ScriptedRing ring(2);
  const auto channel = ring.Open();
  std::vector<std::future<Executed>> executed;
  for (uint64_t length = 1; length <= 2; ++length) {
    executed.push_back(ExecuteLater(*channel, length));
    ring.Take();
  }
  std::future<Executed> without_room = ExecuteLater(*channel, 3);
  EXPECT_EQ(without_room.wait_for(milliseconds(20)), std::future_status::timeout);
  channel->End(MakeError(ErrorReason::SESSION_ENDING, "evicted"));
  for (std::future<Executed>& each : executed) {
    const Executed failed = each.get();
    ASSERT_TRUE(failed.has_value());
    EXPECT_EQ(ErrorInfoOf(failed->status()).field, "evicted");
  }
  EXPECT_FALSE(without_room.get().has_value()) << "it was not submitted";
}

TEST(RingChannel, DropsAnOutcomeThatComesAfterTheDeadline) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open(milliseconds(30));
  const Executed late = Execute(*channel, 1);
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(IsTransportFailure(late->status()));
  ring.Complete(ring.Take(), 1);
  // Enough requests to wrap around the ring: the slot of the late outcome is used again.
  for (uint32_t turn = 2; turn < 4 * kEntries; ++turn) {
    Executed executed;
    std::thread submitter([&] { executed = Execute(*channel, turn); });
    ring.Complete(ring.Take(), turn);
    submitter.join();
    EXPECT_TRUE(TokenOf(executed) == turn || !executed->ok());
  }
}

TEST(RingChannel, TimesOutWhereItNeverHasRoom) {
  ScriptedRing ring(2);
  const auto channel = ring.Open(milliseconds(30));
  EXPECT_FALSE(Execute(*channel, 1)->ok());
  EXPECT_FALSE(Execute(*channel, 2)->ok());
  EXPECT_EQ(Execute(*channel, 3)->status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(ring.Take().length, 1U);
  EXPECT_EQ(ring.Take().length, 2U);
  ring::Submission none;
  EXPECT_EQ(ring.end().Peek(&none), ring::DaemonEnd::Next::kNothing);
}

TEST(RingChannel, ReadsTokensAndTheFieldBehindThem) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  const RingRequest request{.entry = {.opcode = ring::Opcode::kPost, .count = 3}, .tokens = 3};
  std::future<Executed> executed =
      std::async(std::launch::async, [&] { return channel->Execute(request, [](std::byte*) {}); });
  const ring::Submission entry = ring.Take();
  const std::array<uint32_t, 3> tokens = {0, 21, 0};
  ring.end().WriteResult(entry.result_offset, std::as_bytes(std::span(tokens)));
  ring.Refuse(entry, {.status = 1, .reason = 2, .posted = 2}, 3, "requests[2].write.sges");
  const Executed reply = executed.get();
  ASSERT_TRUE(reply.has_value() && reply->ok());
  EXPECT_EQ((*reply)->tokens, (std::vector<uint32_t>{0, 21}));
  EXPECT_EQ((*reply)->field, "requests[2].write.sges");
}

TEST(RingChannel, IsNotUsedByAChild) {
  ScriptedRing ring(kEntries);
  const auto channel = ring.Open();
  const pid_t child = fork();
  if (child == 0) {
    const bool called = !Execute(*channel, 1).has_value();
    channel->End(MakeError(ErrorReason::SESSION_ENDING));
    _exit(called && channel->daemon_cpu() == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ring::Submission none;
  EXPECT_EQ(ring.end().Peek(&none), ring::DaemonEnd::Next::kNothing);
}

}  // namespace
}  // namespace rnicd::inline client
