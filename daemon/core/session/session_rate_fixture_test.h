#pragma once

#include <chrono>
#include <optional>

#include "daemon/core/request/lease.h"
#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {

// All callers are one tenant with these limits.
inline WorldOptions OneTenant(const TenantLimits& limits) {
  WorldOptions options;
  options.policy = Policy{.tenants = {{.name = "all", .matches = {}, .sharing = Sharing::kOne, .limits = limits}},
                          .default_tenant = "all",
                          .roles = {}};
  return options;
}

class SessionRateTest : public ::testing::Test {
 protected:
  static WorldOptions Options() {
    TenantLimits limits;
    limits.tenant_rate = {.per_second = 100, .burst = 3};
    limits.session_rate = {.per_second = 10, .burst = 2};
    return OneTenant(limits);
  }
  // Time to wait; empty when the call was admitted.
  static std::optional<std::chrono::nanoseconds> Wait(const Owner& owner) {
    std::chrono::nanoseconds wait{0};
    const absl::Status status = owner.session->AdmitCall(&wait);
    if (status.ok()) {
      return std::nullopt;
    }
    EXPECT_THAT(status, FailsWith(ErrorReason::RATE_LIMITED));
    return wait;
  }

  World world_{Options()};
  Owner first_{world_, 1};
  Owner second_{world_, 2};
};

}  // namespace rnicd::core
