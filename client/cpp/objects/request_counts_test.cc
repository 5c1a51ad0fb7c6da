#include "client/cpp/objects/request_counts.h"

#include <vector>

#include "gtest/gtest.h"

namespace rnicd::inline client {
namespace {

constexpr QueuePairId kCounted{5};

Completion Ended(uint32_t number, OperationType type = OperationType::kWrite) {
  return {.type = type, .queue_pair = kCounted, .request_number = number};
}

TEST(RequestCounts, ACompletionProvesThatAllBeforeItAreOver) {
  RequestCounts counts({.initiator = 8, .receive = 2});
  counts.Add({.initiator = 5, .receive = 2});
  counts.OnCompletion(Ended(3));
  EXPECT_EQ(counts.outstanding().initiator, 2U);
  EXPECT_EQ(counts.outstanding().receive, 2U);
  counts.OnCompletion(Ended(2));
  EXPECT_EQ(counts.outstanding().initiator, 2U) << "another thread polled it, and was slower";
  counts.OnCompletion(Ended(2, OperationType::kReceiveAndInvalidate));
  EXPECT_EQ(counts.outstanding().receive, 0U);
}

TEST(RequestCounts, AChainThatHasNoRoomIsNotCounted) {
  RequestCounts counts({.initiator = 2, .receive = 1});
  EXPECT_TRUE(counts.AddIfRoom({.initiator = 2, .receive = 0}));
  EXPECT_FALSE(counts.AddIfRoom({.initiator = 1, .receive = 1}));
  EXPECT_TRUE(counts.AddIfRoom({.initiator = 0, .receive = 1}));
  EXPECT_EQ(counts.outstanding().initiator, 2U);
  counts.OnCompletion(Ended(1));
  EXPECT_TRUE(counts.AddIfRoom({.initiator = 1, .receive = 0}));
}

TEST(RequestCounts, LostRequestsHaveTheLastNumbersAndTheDaemonNumbersOnWithoutThem) {
  RequestCounts counts({.initiator = 8, .receive = 2});
  counts.Add({.initiator = 5, .receive = 2});
  std::vector<Completion> lost(2, Ended(0));
  counts.NumberLost(lost);
  EXPECT_EQ(lost[0].request_number, 4U);
  EXPECT_EQ(lost[1].request_number, 5U);
  std::vector<Completion> receive(1, Ended(0, OperationType::kReceive));
  counts.NumberLost(receive);
  EXPECT_EQ(receive[0].request_number, 2U);
  for (const Completion& each : {Ended(2), lost[0], lost[1], Ended(1, OperationType::kReceive), receive[0]}) {
    counts.OnCompletion(each);
  }
  EXPECT_EQ(counts.outstanding().initiator, 0U);
  EXPECT_EQ(counts.outstanding().receive, 0U);
  counts.Add({.initiator = 2});
  counts.OnCompletion(Ended(4));
  EXPECT_EQ(counts.outstanding().initiator, 1U);
  counts.OnCompletion(Ended(5));
  EXPECT_EQ(counts.outstanding().initiator, 0U);
}

TEST(PairsOfQueue, GivesLostRequestsOnceAndInOrder) {
  PairsOfQueue pairs;
  std::vector<Completion> taken(2);
  EXPECT_EQ(pairs.TakeLost(taken), 0U);
  pairs.AddLost(std::vector{Ended(1), Ended(2), Ended(3)});
  EXPECT_TRUE(pairs.has_lost());
  EXPECT_EQ(pairs.TakeLost(taken), 2U);
  EXPECT_EQ(taken[1].request_number, 2U);
  EXPECT_EQ(pairs.TakeLost(taken), 1U);
  EXPECT_EQ(taken[0].request_number, 3U);
  EXPECT_FALSE(pairs.has_lost());
}

TEST(PairsOfQueue, CountsTheCompletionsOfThePairsThatItHas) {
  PairsOfQueue pairs;
  const auto counts = std::make_shared<RequestCounts>(OutstandingRequests{.initiator = 8});
  counts->Add({.initiator = 4});
  pairs.Insert(kCounted, counts);
  const std::vector<Completion> completions = {Ended(1), Completion{.queue_pair = QueuePairId{6}, .request_number = 4},
                                               Ended(2)};
  pairs.OnCompletions(completions);
  EXPECT_EQ(counts->outstanding().initiator, 2U);
  pairs.Remove(kCounted);
  pairs.OnCompletions(std::vector{Ended(4)});
  EXPECT_EQ(counts->outstanding().initiator, 2U);
}

}  // namespace
}  // namespace rnicd::inline client
