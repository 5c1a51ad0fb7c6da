#include "client/cpp/rings/ring_path.h"

#include <future>
#include <string>
#include <vector>

#include "base/ndk/op_flags.h"
#include "base/status.h"
#include "client/cpp/rings/scripted_ring_test.h"
#include "gtest/gtest.h"
#include "ring/chain.h"

namespace rnicd::inline client {
namespace {

constexpr uint32_t kPathEntries = 8;
constexpr QueuePairId kQueuePair{5};

std::vector<WorkRequest> Chain(size_t count) {
  return std::vector<WorkRequest>(count,
                                  {.operation = WorkRequest::Send{.sges = {{.address = 1, .length = 2, .token = {}}}}});
}

class RingPathTest : public testing::Test {
 protected:
  template <typename Call>
  auto Later(Call call) {
    return std::async(std::launch::async, call);
  }

  ScriptedRing ring_{kPathEntries};
  RingPath path_{DataPath::kRings, [this] { return ring_.Open(); }};
};

TEST_F(RingPathTest, PostsAChainAndReturnsItsTokens) {
  auto posted = Later([this] { return path_.Post(kQueuePair, Chain(2)); });
  const ring::Submission entry = ring_.Take();
  EXPECT_EQ(entry.opcode, ring::Opcode::kPost);
  EXPECT_EQ(entry.object, kQueuePair.value);
  std::vector<uint64_t> payload(entry.payload_bytes / sizeof(uint64_t));
  ring_.end().CopyPayload(entry.payload_offset, entry.payload_bytes, payload);
  std::vector<WorkRequest> chain;
  ASSERT_TRUE(ring::DecodeChain(payload, entry.count, &chain).ok());
  EXPECT_EQ(std::get<WorkRequest::Send>(chain[1].operation).sges[0].length, 2U);
  const std::array<uint32_t, 2> tokens = {0, 9};
  ring_.end().WriteResult(entry.result_offset, std::as_bytes(std::span(tokens)));
  ring_.end().Complete({.user_data = entry.user_data, .opcode = entry.opcode, .posted = 2});
  const auto outcome = posted.get();
  ASSERT_TRUE(outcome.has_value() && outcome->ok());
  EXPECT_EQ((*outcome)->posted, 2U);
  EXPECT_TRUE((*outcome)->failure.ok());
  EXPECT_EQ((*outcome)->issued_tokens.size(), 1U);
  EXPECT_EQ((*outcome)->TokenOf(1).value, 9U);
}

TEST_F(RingPathTest, ReportsTheRefusedRequestAsACallDoes) {
  auto posted = Later([this] { return path_.Post(kQueuePair, Chain(2)); });
  const ring::Submission entry = ring_.Take();
  ring_.Refuse(entry,
               {.reason = static_cast<uint32_t>(ErrorReason::TRANSFER_TOO_LONG),
                .posted = 1,
                .base_or_limit = 10,
                .length_or_used = 0,
                .requested = 11},
               2, "requests[1].send.sges");
  const auto outcome = posted.get();
  ASSERT_TRUE(outcome.has_value() && outcome->ok());
  EXPECT_EQ((*outcome)->posted, 1U);
  const ErrorInfo info = ErrorInfoOf((*outcome)->failure);
  EXPECT_EQ(info.reason, ErrorReason::TRANSFER_TOO_LONG);
  EXPECT_EQ(info.field, "requests[1].send.sges");
  EXPECT_EQ(info.limit, 10U);
  EXPECT_EQ(info.requested, 11U);
}

TEST_F(RingPathTest, ARefusalOfTheWholeChainIsAStatus) {
  auto posted = Later([this] { return path_.Post(kQueuePair, Chain(1)); });
  ring_.Refuse(ring_.Take(), {.reason = static_cast<uint32_t>(ErrorReason::OBJECT_NOT_FOUND)}, 1, "qp_id");
  const auto outcome = posted.get();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(FailedWith(outcome->status(), ErrorReason::OBJECT_NOT_FOUND));
  EXPECT_EQ(ErrorInfoOf(outcome->status()).field, "qp_id");
}

// A chain that does not fit into the payload area.
class RingPathPiecesTest : public RingPathTest {
 protected:
  static constexpr uint32_t kRequests = 300;

  auto PostMany() {
    return Later([this] { return path_.Post(kQueuePair, Chain(kRequests)); });
  }
  // All of the piece is posted, and its last request gets this token.
  void Answer(const ring::Submission& entry, uint32_t token) {
    std::vector<uint32_t> tokens(entry.count);
    tokens.back() = token;
    ring_.end().WriteResult(entry.result_offset, std::as_bytes(std::span(tokens)));
    ring_.end().Complete({.user_data = entry.user_data, .opcode = entry.opcode, .posted = entry.count});
  }
};

TEST_F(RingPathPiecesTest, AChainAboveThePayloadAreaIsOneChain) {
  auto posted = PostMany();
  uint32_t answered = 0;
  std::vector<uint32_t> last_of_pieces;
  while (answered < kRequests) {
    const ring::Submission entry = ring_.Take();
    answered += entry.count;
    last_of_pieces.push_back(answered - 1);
    Answer(entry, answered);
  }
  ASSERT_GT(last_of_pieces.size(), 1U);
  const auto outcome = posted.get();
  ASSERT_TRUE(outcome.has_value() && outcome->ok());
  EXPECT_EQ((*outcome)->posted, kRequests);
  EXPECT_EQ((*outcome)->issued_tokens.size(), last_of_pieces.size());
  for (const uint32_t index : last_of_pieces) {
    EXPECT_EQ((*outcome)->TokenOf(index).value, index + 1);
  }
}

TEST_F(RingPathPiecesTest, ARefusalInALaterPieceEndsTheChainAndNamesTheRequest) {
  auto posted = PostMany();
  const ring::Submission first = ring_.Take();
  Answer(first, 9);
  const ring::Submission second = ring_.Take();
  ring_.Refuse(second, {.reason = static_cast<uint32_t>(ErrorReason::TRANSFER_TOO_LONG), .posted = 1}, second.count,
               "requests[1].send.sges");
  const auto outcome = posted.get();
  ASSERT_TRUE(outcome.has_value() && outcome->ok());
  EXPECT_EQ((*outcome)->posted, first.count + 1);
  EXPECT_EQ(ErrorInfoOf((*outcome)->failure).field, "requests[" + std::to_string(first.count + 1) + "].send.sges");
}

// The posted requests stay posted: a status would mean that none is.
TEST_F(RingPathPiecesTest, ARefusalOfALaterPieceLeavesWhatWasPosted) {
  auto posted = PostMany();
  const ring::Submission first = ring_.Take();
  Answer(first, 9);
  const ring::Submission second = ring_.Take();
  ring_.Refuse(second, {.reason = static_cast<uint32_t>(ErrorReason::OBJECT_NOT_FOUND)}, second.count, "qp_id");
  const auto outcome = posted.get();
  ASSERT_TRUE(outcome.has_value() && outcome->ok());
  EXPECT_EQ((*outcome)->posted, first.count);
  EXPECT_EQ((*outcome)->TokenOf(first.count - 1).value, 9U);
  EXPECT_TRUE(FailedWith((*outcome)->failure, ErrorReason::OBJECT_NOT_FOUND));
  EXPECT_EQ(ErrorInfoOf((*outcome)->failure).field, "qp_id");
}

TEST_F(RingPathPiecesTest, TheOutcomeOfAPieceUnderWayAtTheEndIsUnknown) {
  auto posted = PostMany();
  Answer(ring_.Take(), 9);
  ring_.Take();
  path_.End(MakeError(ErrorReason::SESSION_ENDING));
  const auto outcome = posted.get();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(FailedWith(outcome->status(), ErrorReason::SESSION_ENDING));
}

TEST_F(RingPathPiecesTest, ADeferredRequestStaysWithTheNext) {
  std::vector<WorkRequest> chain = Chain(kRequests);
  for (size_t index = 0; index + 1 < chain.size(); ++index) {
    chain[index].flags = index % 10 == 9 ? 0 : kOpFlagDefer;
  }
  auto posted = Later([this, &chain] { return path_.Post(kQueuePair, chain); });
  for (uint32_t answered = 0; answered < kRequests;) {
    const ring::Submission entry = ring_.Take();
    EXPECT_EQ(entry.count % 10, 0U);
    answered += entry.count;
    Answer(entry, 1);
  }
  EXPECT_TRUE(posted.get()->ok());
}

TEST_F(RingPathTest, RegistersAndDeregisters) {
  const std::vector<MdlEntry> chain = {{.memory_id = MemoryObjectId{3}, .byte_offset = 0, .byte_count = 4096}};
  auto registered = Later([&] { return path_.Register(MemoryRegionId{6}, chain, 4096, 1); });
  ring::Submission entry = ring_.Take();
  EXPECT_EQ(entry.length, 4096U);
  EXPECT_EQ(entry.argument, 1U);
  ring_.end().Complete({.user_data = entry.user_data,
                        .opcode = entry.opcode,
                        .local_token = 1,
                        .remote_token = 2,
                        .base_or_limit = 3,
                        .length_or_used = 4096});
  const auto registration = registered.get();
  ASSERT_TRUE(registration.has_value() && registration->ok());
  EXPECT_EQ((*registration)->local_token.value, 1U);
  EXPECT_EQ((*registration)->remote_token.value, 2U);
  EXPECT_EQ((*registration)->base_address.value, 3U);
  EXPECT_EQ((*registration)->length, 4096U);
  auto deregistered = Later([&] { return path_.Deregister(MemoryRegionId{6}); });
  entry = ring_.Take();
  EXPECT_EQ(entry.opcode, ring::Opcode::kDeregisterMr);
  ring_.Refuse(entry, {.reason = static_cast<uint32_t>(ErrorReason::REGION_BUSY)}, 0, "mr_id");
  const std::optional<absl::Status> status = deregistered.get();
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(FailedWith(*status, ErrorReason::REGION_BUSY));
  EXPECT_EQ(ErrorInfoOf(*status).field, "mr_id");
}

TEST_F(RingPathTest, LeavesToACallWhatACallRefusesOrOnlyACallCarries) {
  EXPECT_FALSE(path_.Post(kQueuePair, {}).has_value());
  EXPECT_FALSE(path_.Post(kQueuePair, Chain(ring::kChainMax + 1)).has_value());
  std::vector<WorkRequest> deferred = Chain(ring::kChainMax);
  for (WorkRequest& request : deferred) {
    request.flags = kOpFlagDefer;
  }
  EXPECT_FALSE(path_.Post(kQueuePair, deferred).has_value()) << "more than the payload area, and cannot be cut";
  const Sges too_long = {{.address = 0, .length = uint64_t{1} << 32, .token = {}}};
  const std::vector<WorkRequest> chain = {{.operation = WorkRequest::Send{.sges = too_long}}};
  EXPECT_FALSE(path_.Post(kQueuePair, chain).has_value());
}

TEST(RingPath, CallsOnlyWhereItIsToldTo) {
  RingPath path(DataPath::kCalls, []() -> absl::StatusOr<std::unique_ptr<RingChannel>> {
    ADD_FAILURE();
    return MakeError(ErrorReason::RINGS_UNAVAILABLE);
  });
  EXPECT_FALSE(path.Deregister(MemoryRegionId{1}).has_value());
}

TEST(RingPath, WithoutARingCallsOrFailsAndAsksOnce) {
  for (const DataPath data_path : {DataPath::kAutomatic, DataPath::kRings}) {
    int opened = 0;
    RingPath path(data_path, [&]() -> absl::StatusOr<std::unique_ptr<RingChannel>> {
      ++opened;
      return MakeError(ErrorReason::QUOTA_RINGS);
    });
    for (int turn = 0; turn < 2; ++turn) {
      const std::optional<absl::Status> posted = path.PostWithoutOutcome(kQueuePair, Chain(1));
      EXPECT_EQ(posted.has_value(), data_path == DataPath::kRings);
      EXPECT_TRUE(!posted.has_value() || FailedWith(*posted, ErrorReason::QUOTA_RINGS));
    }
    EXPECT_EQ(opened, 1);
  }
}

TEST(RingPath, ARingThatIsOpenedAfterTheSessionEndedIsOver) {
  ScriptedRing ring(kPathEntries);
  RingPath path(DataPath::kAutomatic, [&] { return ring.Open(); });
  path.End(MakeError(ErrorReason::SESSION_ENDING));
  EXPECT_FALSE(path.Post(kQueuePair, Chain(1)).has_value());
}

TEST(RingPath, FewRequestsOtherThanPostsOpenNoRing) {
  int opened = 0;
  RingPath path(DataPath::kAutomatic, [&]() -> absl::StatusOr<std::unique_ptr<RingChannel>> {
    ++opened;
    return MakeError(ErrorReason::QUOTA_RINGS);
  });
  for (int request = 0; request < RingPath::kCallsFirst; ++request) {
    EXPECT_FALSE(path.Deregister(MemoryRegionId{1}).has_value());
  }
  EXPECT_EQ(opened, 0);
  EXPECT_FALSE(path.Deregister(MemoryRegionId{1}).has_value());
  EXPECT_EQ(opened, 1);
}

}  // namespace
}  // namespace rnicd::inline client
