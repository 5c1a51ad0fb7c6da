#include "daemon/audit/repeat_key.h"

#include <gtest/gtest.h>

namespace rnicd::audit {
namespace {

AuditLine Refusal(core::Role role = core::Role::kWorkload) {
  return {.what = "MemoryService.RegisterMr",
          .code = absl::StatusCode::kInvalidArgument,
          .error = {.reason = ErrorReason::FIELD_OUT_OF_RANGE, .field = "mdl_chain[3].byte_count"},
          .caller = core::Caller{.pid = 4, .role = role},
          .session_id = 9,
          .object = "mr_id=1"};
}

TEST(RepeatKeyOf, IsBlindToWhatAClientCanVaryFromCallToCall) {
  AuditLine other = Refusal();
  other.object = "mr_id=2";
  other.error.field = "mdl_chain[17].byte_count";
  other.error.requested = 12;
  other.caller->pid = 5;
  other.time = WallTime(std::chrono::seconds(1));
  EXPECT_EQ(RepeatKeyOf(Refusal()), RepeatKeyOf(other));
}

TEST(RepeatKeyOf, KnowsActionReasonFieldSessionTenantAndNote) {
  const auto differs = [](void (*change)(AuditLine&)) {
    AuditLine other = Refusal();
    change(other);
    return RepeatKeyOf(other) != RepeatKeyOf(Refusal());
  };
  EXPECT_TRUE(differs([](AuditLine& line) { line.what = "MemoryService.CreateMr"; }));
  EXPECT_TRUE(differs([](AuditLine& line) { line.code = absl::StatusCode::kNotFound; }));
  EXPECT_TRUE(differs([](AuditLine& line) { line.error.reason = ErrorReason::OBJECT_NOT_FOUND; }));
  EXPECT_TRUE(differs([](AuditLine& line) { line.error.field = "mdl_chain[3].address"; }));
  EXPECT_TRUE(differs([](AuditLine& line) { line.session_id = 10; }));
  EXPECT_TRUE(differs([](AuditLine& line) { line.tenant = "t"; }));
  EXPECT_TRUE(differs([](AuditLine& line) { line.note = "silent"; }));
  EXPECT_TRUE(differs([](AuditLine& line) { line.caller->role = core::Role::kOperator; }));
}

TEST(RepeatKeyOf, KnowsTheObjectsOfOperators) {
  AuditLine other = Refusal(core::Role::kOperator);
  other.object = "session_id=2";
  EXPECT_NE(RepeatKeyOf(Refusal(core::Role::kOperator)), RepeatKeyOf(other));
}

}  // namespace
}  // namespace rnicd::audit
