#include "daemon/policy/limits_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace rnicd::policy {
namespace {

using core::Resource;

// Sets one field by name, so that no two are confused.
v1::ResourceLimits WithField(const std::string& name, uint64_t value) {
  v1::ResourceLimits limits;
  v1::ResourceLimits::GetReflection()->SetUInt64(&limits, v1::ResourceLimits::descriptor()->FindFieldByName(name),
                                                 value);
  return limits;
}

testing::AssertionResult IsRefusedAt(const absl::Status& status, const std::string& field) {
  if (FailedWith(status, ErrorReason::FIELD_OUT_OF_RANGE) && ErrorInfoOf(status).field == field) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << status << " of " << ErrorInfoOf(status).field;
}

TEST(LimitsWire, EveryLimitedResourceHasTheFieldOfItsName) {
  for (size_t index = 0; index < core::kLimitedResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    const std::string name(core::ResourceName(resource));
    ASSERT_NE(v1::ResourceLimits::descriptor()->FindFieldByName(name), nullptr) << name;
    const core::Limits limits = FromWire(WithField(name, 4096 * (index + 1)));
    for (size_t other = 0; other < core::kLimitedResourceCount; ++other) {
      EXPECT_EQ(limits[static_cast<Resource>(other)], other == index ? 4096 * (index + 1) : 0) << name;
    }
  }
  // Those, and the rate.
  EXPECT_EQ(v1::ResourceLimits::descriptor()->field_count(), static_cast<int>(core::kLimitedResourceCount) + 1);
}

TEST(LimitsWire, LimitsSurviveTheWayThereAndBack) {
  v1::ResourceLimits wire;
  for (int index = 0; index < v1::ResourceLimits::descriptor()->field_count(); ++index) {
    v1::ResourceLimits::GetReflection()->SetUInt64(&wire, v1::ResourceLimits::descriptor()->field(index), 1000 + index);
  }
  EXPECT_EQ(ToWire(FromWire(wire), RateFromWire(wire)).SerializeAsString(), wire.SerializeAsString());
}

TEST(LimitsWire, TheRateIsACallsASecondAndNoResource) {
  const v1::ResourceLimits wire = WithField("requests_per_second", 300);
  EXPECT_EQ(RateFromWire(wire).per_second, 300u);
  EXPECT_EQ(RateFromWire(wire).burst, 0u);
  const core::Limits limits = FromWire(wire);
  for (size_t index = 0; index < core::kLimitedResourceCount; ++index) {
    EXPECT_EQ(limits[static_cast<Resource>(index)], 0u);
  }
}

TEST(LimitsWire, NoLimitsAtAllAreFine) {
  EXPECT_TRUE(CheckLimits({}, "limits").ok());
  EXPECT_TRUE(CheckSessionLimits({}, {}, "session_limits").ok());
}

TEST(LimitsWire, BytesThatAreNoWholePagesAreRefused) {
  for (const char* name : {"pinned_bytes", "registered_bytes", "memory_bytes"}) {
    EXPECT_TRUE(CheckLimits(WithField(name, 8192), "limits").ok()) << name;
    EXPECT_TRUE(IsRefusedAt(CheckLimits(WithField(name, 8191), "limits"), std::string("limits.") + name));
    EXPECT_TRUE(IsRefusedAt(CheckSessionLimits(WithField(name, 1), {}, "s"), std::string("s.") + name));
  }
  EXPECT_TRUE(CheckLimits(WithField("regions", 8191), "limits").ok());
}

TEST(LimitsWire, NumbersThatOnlyFitUnsignedAreRefused) {
  for (size_t index = 0; index < core::kLimitedResourceCount; ++index) {
    const std::string name(core::ResourceName(static_cast<Resource>(index)));
    EXPECT_TRUE(IsRefusedAt(CheckLimits(WithField(name, uint64_t{1} << 63), "limits"), "limits." + name));
    EXPECT_TRUE(IsRefusedAt(CheckLimits(WithField(name, UINT64_MAX), "limits"), "limits." + name));
  }
}

TEST(LimitsWire, RatesThatTheLimiterCannotKeepAreRefused) {
  EXPECT_TRUE(CheckLimits(WithField("requests_per_second", 1000000000), "limits").ok());
  EXPECT_TRUE(IsRefusedAt(CheckLimits(WithField("requests_per_second", 1000000001), ""), "requests_per_second"));
}

TEST(LimitsWire, ASessionMayHaveAsMuchAsItsOwnerAndNoMore) {
  for (int index = 0; index < v1::ResourceLimits::descriptor()->field_count(); ++index) {
    const std::string name = v1::ResourceLimits::descriptor()->field(index)->name();
    if (name == "sessions") {
      continue;
    }
    const v1::ResourceLimits owner = WithField(name, 8192);
    EXPECT_TRUE(CheckSessionLimits(WithField(name, 8192), owner, "s").ok()) << name;
    EXPECT_TRUE(IsRefusedAt(CheckSessionLimits(WithField(name, 12288), owner, "s"), "s." + name));
    EXPECT_TRUE(CheckSessionLimits(WithField(name, 12288), {}, "s").ok()) << name << ": the owner has no limit";
    EXPECT_TRUE(CheckSessionLimits({}, owner, "s").ok()) << name << ": the flags say what a session may have";
  }
}

TEST(LimitsWire, SessionsAreNoLimitOfASession) {
  EXPECT_TRUE(IsRefusedAt(CheckSessionLimits(WithField("sessions", 1), {}, "s"), "s.sessions"));
  EXPECT_TRUE(IsRefusedAt(CheckSessionLimits(WithField("sessions", 1), WithField("sessions", 5), "s"), "s.sessions"));
  EXPECT_TRUE(CheckLimits(WithField("sessions", 1), "limits").ok());
}

}  // namespace
}  // namespace rnicd::policy
