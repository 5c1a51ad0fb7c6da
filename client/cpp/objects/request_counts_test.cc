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
