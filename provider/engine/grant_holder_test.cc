#include "provider/engine/grant_holder.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "provider/api/requests_test.h"
#include "provider/engine/engine_memory_region.h"

namespace rnicd::provider {
namespace {

constexpr LocalToken kLocalName{5};
constexpr RemoteToken kBefore{6};
constexpr RemoteToken kIssued{7};
constexpr uint64_t kBinder = 3;

// What a test sees of a card.
struct CardCalls {
  std::vector<std::string> calls;
  // The card refuses to end what it has.
  bool refuses = false;

  absl::Status End(const std::string& what) {
    calls.push_back("end " + what);
    return refuses ? MakeError(ErrorReason::DEVICE_FAILED) : absl::OkStatus();
  }
};

struct FakeGrant final : EngineGrant {
  explicit FakeGrant(CardCalls& at) : card(at) {}
  bool needs_bind() const override { return true; }
  absl::Status End() override { return card.End("grant"); }
  CardCalls& card;
};

struct FakeRegion final : EngineMemoryRegion {
  FakeRegion(CardCalls& at, std::span<const std::span<std::byte>> runs)
      : EngineMemoryRegion({.base = {kSideBase}, .runs = runs}), card(at) {}
  LocalToken local_token() const override { return {}; }
  RemoteToken remote_token() const override { return {}; }
  absl::Status End() override { return card.End("region"); }
  CardCalls& card;
};

struct FakeHolder final : GrantHolder {
  FakeHolder(CardCalls& at, std::optional<LocalToken> local) : GrantHolder(local, kBefore), card(at) {}
  ~FakeHolder() override { RetireForGood(); }
  void Publish(const EngineGrant& /*grant*/, RemoteToken /*token*/) override { card.calls.emplace_back("publish"); }
  void Suspend(RemoteToken /*token*/) override { card.calls.emplace_back("suspend"); }
  void Withdraw(RemoteToken /*token*/) override { card.calls.emplace_back("withdraw"); }
  using GrantHolder::RetireForGood;
  CardCalls& card;
};

class GrantHolderTest : public testing::Test {
 protected:
  EngineRequest Prepared(WorkRequest work) {
    EngineRequest request;
    request.work = std::move(work);
    auto prepared = std::make_unique<GrantRequest>();
    prepared->grant = std::make_unique<FakeGrant>(card_);
    request.card = std::move(prepared);
    return request;
  }
  EngineRequest PreparedRegistration() { return Prepared(Request(1, {}, FastRegisterWork{})); }
  EngineRequest PreparedBind() { return Prepared(Bind(1, nullptr, region_)); }
  NtStatus PutInForce(GrantHolder& holder, EngineRequest request) { return holder.Execute(request, kIssued, kBinder); }
  bool RegionIsHeld() { return FailedWith(region_->Deregister(), ErrorReason::REGION_HAS_WINDOWS); }

  CardCalls card_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(64);
  const std::span<std::byte> run_{bytes_};
  const std::shared_ptr<FakeRegion> region_ =
      std::make_shared<FakeRegion>(card_, std::span<const std::span<std::byte>>(&run_, 1));
  const std::shared_ptr<FakeHolder> fast_ = std::make_shared<FakeHolder>(card_, kLocalName);
  const std::shared_ptr<FakeHolder> window_ = std::make_shared<FakeHolder>(card_, std::nullopt);
};

TEST_F(GrantHolderTest, OneGrantIsInForceFromItsExecutionToItsInvalidation) {
  EXPECT_EQ(fast_->issued(), kBefore);
  fast_->Issue(kIssued);
  EXPECT_EQ(fast_->issued(), kIssued);
  EXPECT_FALSE(fast_->Invalidate());
  EXPECT_EQ(PutInForce(*fast_, PreparedRegistration()), NtStatus::kSuccess);
  EXPECT_TRUE(fast_->in_force());
  EXPECT_EQ(PutInForce(*fast_, PreparedRegistration()), NtStatus::kInvalidDeviceRequest);
  EXPECT_TRUE(fast_->Invalidate());
  EXPECT_FALSE(fast_->in_force());
  EXPECT_EQ(card_.calls, (std::vector<std::string>{"publish", "suspend", "end grant", "withdraw"}));
}

TEST_F(GrantHolderTest, WhatTheCardRefusesToEndStaysInForce) {
  ASSERT_EQ(PutInForce(*fast_, PreparedRegistration()), NtStatus::kSuccess);
  card_.refuses = true;
  EXPECT_FALSE(fast_->Invalidate());
  EXPECT_TRUE(fast_->in_force());
  EXPECT_EQ(card_.calls, (std::vector<std::string>{"publish", "suspend", "end grant", "publish"}));
  card_.refuses = false;
  EXPECT_TRUE(fast_->Invalidate());
}

TEST_F(GrantHolderTest, AFastRegionEndsByEitherTokenAndAWindowByItsOwnOverItsQueuePair) {
  for (const uint32_t token : {kIssued.value, kLocalName.value}) {
    ASSERT_EQ(PutInForce(*fast_, PreparedRegistration()), NtStatus::kSuccess);
    EXPECT_FALSE(fast_->InvalidateToken(kBefore.value, kBinder));
    EXPECT_TRUE(fast_->InvalidateToken(token, kBinder + 1));
  }
  for (const std::optional<uint64_t> arrived_at : {std::optional(kBinder), std::optional<uint64_t>()}) {
    ASSERT_EQ(PutInForce(*window_, PreparedBind()), NtStatus::kSuccess);
    EXPECT_FALSE(window_->InvalidateToken(kIssued.value, kBinder + 1));
    EXPECT_FALSE(window_->InvalidateToken(kLocalName.value, kBinder));
    EXPECT_TRUE(window_->InvalidateToken(kIssued.value, arrived_at));
  }
}

TEST_F(GrantHolderTest, ARegionStaysRegisteredWhileAWindowIsBoundToItOrBeginsToBe) {
  EngineRequest bind = PreparedBind();
  ASSERT_TRUE(window_->BeginBind(bind));
  EXPECT_TRUE(RegionIsHeld());
  BoundWindows bound;
  EXPECT_EQ(window_->ConcludeBind(bind, kIssued, kBinder, bound), NtStatus::kSuccess);
  EXPECT_TRUE(RegionIsHeld());
  bound.End();
  EXPECT_FALSE(window_->in_force()) << "its queue pair has ended";
  EXPECT_TRUE(region_->Deregister().ok());
  EngineRequest late = PreparedBind();
  EXPECT_FALSE(window_->BeginBind(late)) << "the region is gone";
}

TEST_F(GrantHolderTest, ABindThatFailsLeavesTheRegionFree) {
  BoundWindows bound;
  EngineRequest failed = PreparedBind();
  ASSERT_TRUE(window_->BeginBind(failed));
  failed.result.status = NtStatus::kCancelled;
  EXPECT_EQ(window_->ConcludeBind(failed, kIssued, kBinder, bound), NtStatus::kCancelled);
  EngineRequest overtaken = PreparedBind();
  ASSERT_TRUE(window_->BeginBind(overtaken));
  window_->RetireForGood();
  EXPECT_EQ(window_->ConcludeBind(overtaken, kIssued, kBinder, bound), NtStatus::kInvalidDeviceRequest);
  EngineRequest never_begun = PreparedBind();
  never_begun.result.status = NtStatus::kCancelled;
  EXPECT_EQ(window_->ConcludeBind(never_begun, kIssued, kBinder, bound), NtStatus::kCancelled);
  EXPECT_TRUE(region_->Deregister().ok());
}

TEST_F(GrantHolderTest, ARetiredHolderHoldsNothingAnyMore) {
  ASSERT_EQ(PutInForce(*fast_, PreparedRegistration()), NtStatus::kSuccess);
  fast_->RetireForGood();
  EXPECT_FALSE(fast_->in_force());
  EXPECT_EQ(PutInForce(*fast_, PreparedRegistration()), NtStatus::kInvalidDeviceRequest);
}

TEST_F(GrantHolderTest, AGrantIsMadeOfThePartOfTheRegionAndNotOnceThatIsGone) {
  const auto make = [this](const EngineGrant::Shape& shape) -> EngineMemoryRegion::Grant {
    EXPECT_EQ(shape.runs.front().data(), bytes_.data() + 8);
    EXPECT_EQ(shape.runs.front().size(), 16u);
    EXPECT_TRUE(RegionIsHeld()) << "its memory is being read";
    return std::make_unique<FakeGrant>(card_);
  };
  const BindWork work{.base = {kSideBase + 8}, .length = 16};
  EXPECT_TRUE(region_->MakeGrant(work, make).ok());
  card_.refuses = true;
  EXPECT_TRUE(FailedWith(region_->Deregister(), ErrorReason::DEVICE_FAILED));
  EXPECT_TRUE(region_->MakeGrant(work, make).ok()) << "it is still registered";
  card_.refuses = false;
  EXPECT_TRUE(region_->Deregister().ok());
  EXPECT_TRUE(FailedWith(region_->MakeGrant(work, make).status(), ErrorReason::REGION_NOT_REGISTERED));
}

}  // namespace
}  // namespace rnicd::provider
