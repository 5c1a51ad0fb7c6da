#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/secrets/random.h"
#include "provider/api/provider_side_test.h"
#include "provider/networkdirect/nd_provider.h"
#include "tests/networkdirect_model/loaded_model_test.h"

namespace rnicd::provider {

inline constexpr NtStatus kViolation = NtStatus::kAccessViolation;

// The provider on the model, and its events.
class OnModel : public ::testing::Test {
 protected:
  explicit OnModel(const NetworkDirectOptions& options = {}) {
    auto provider = NetworkDirectProvider::Create(
        options, random_, {model_.source()},
        [this](const AdapterEvent& event) { removals_ += event.kind == AdapterEventKind::kRemoved ? 1 : 0; });
    EXPECT_TRUE(provider.ok()) << provider.status();
    provider_ = *std::move(provider);
  }

  Provider& provider() { return *provider_; }
  LoadedModel& model() { return model_; }
  ModelControl& control() { return model_.control(); }
  int removals() const { return removals_; }
  // Posts the request, waits until it is complete, and answers its status.
  static NtStatus StatusOf(ProviderSide& side, WorkRequest request) {
    const size_t count = side.initiated().size() + 1;
    side.Post(std::move(request));
    EXPECT_TRUE(side.Initiated(count));
    return side.initiated().size() == count ? side.initiated().back().status : NtStatus::kPending;
  }
  static void Fill(std::span<std::byte> bytes, unsigned char value) { std::memset(bytes.data(), value, bytes.size()); }
  static bool Holds(std::span<const std::byte> bytes, unsigned char value) {
    return std::ranges::all_of(bytes, [value](std::byte each) { return each == std::byte{value}; });
  }
  // Both sides of a connection that can bind.
  void ConnectAndWait(ProviderSide& here, ProviderSide& there) {
    Connect(here, there);
    there.Post(Receive(900));
    here.Post(Send(900));
    EXPECT_TRUE(here.Initiated(1) && there.Received(1));
  }

 private:
  LoadedModel model_;
  KernelRandom random_;
  std::atomic<int> removals_ = 0;
  std::unique_ptr<NetworkDirectProvider> provider_;
};

}  // namespace rnicd::provider
