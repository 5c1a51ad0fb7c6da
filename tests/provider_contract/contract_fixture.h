#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "provider/api/provider_side_test.h"
#include "tests/provider_contract/tested_card.h"

namespace rnicd::provider {

inline constexpr NtStatus kTimedOut = NtStatus::kIoTimeout;
inline constexpr NtStatus kInvalid = NtStatus::kInvalidDeviceRequest;
inline constexpr NtStatus kViolation = NtStatus::kAccessViolation;

// Two sides of one card, not connected yet.
class ProviderContract : public ::testing::TestWithParam<CardKind> {
 protected:
  Provider& provider() { return card_->provider(); }
  std::string adapter() const { return card_->adapter(); }
  static bool EndsInError(const ProviderSide& side) {
    return Eventually([&side] { return side.state() == QueuePairState::kError; });
  }

  const std::unique_ptr<TestedCard> card_ = GetParam().make();
  ProviderSide near_{card_->provider(), card_->adapter()};
  ProviderSide far_{card_->provider(), card_->adapter()};
};

inline std::string NameOf(const ::testing::TestParamInfo<CardKind>& info) { return info.param.name; }

}  // namespace rnicd::provider
