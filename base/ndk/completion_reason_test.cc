#include "base/ndk/completion_reason.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace rnicd {
namespace {

TEST(CompletionReason, SuccessHasNone) {
  EXPECT_EQ(CompletionReason(OperationType::kSend, NtStatus::kSuccess, false), ErrorReason::UNSPECIFIED);
}

TEST(CompletionReason, EachOutcomeIsFoundByItsStatus) {
  for (const CompletionOutcome& outcome : AllCompletionOutcomes()) {
    const bool at_peer = outcome.reason == ErrorReason::REMOTE_ACCESS_REFUSED;
    EXPECT_EQ(CompletionReason(outcome.type, RowOf(outcome.reason).ntstatus, at_peer), outcome.reason)
        << static_cast<int>(outcome.type) << " " << RowOf(outcome.reason).name;
  }
}

TEST(CompletionReason, NoTwoOutcomesOfAnOperationShareAStatusButForTheTwoSidesOfAnAccess) {
  std::set<std::pair<OperationType, NtStatus>> seen;
  for (const CompletionOutcome& outcome : AllCompletionOutcomes()) {
    if (outcome.reason != ErrorReason::REMOTE_ACCESS_REFUSED) {
      EXPECT_TRUE(seen.emplace(outcome.type, RowOf(outcome.reason).ntstatus).second) << RowOf(outcome.reason).name;
    }
  }
}

TEST(CompletionReason, TellsThePeersMemoryFromOnesOwn) {
  EXPECT_EQ(CompletionReason(OperationType::kRead, NtStatus::kAccessViolation, false),
            ErrorReason::LOCAL_ACCESS_REFUSED);
  EXPECT_EQ(CompletionReason(OperationType::kRead, NtStatus::kAccessViolation, true),
            ErrorReason::REMOTE_ACCESS_REFUSED);
}

TEST(CompletionReason, AStatusThatTheOperationDoesNotHaveIsTheDevicesFault) {
  EXPECT_EQ(CompletionReason(OperationType::kInvalidate, NtStatus::kBufferOverflow, false), ErrorReason::DEVICE_FAILED);
}

}  // namespace
}  // namespace rnicd
