#include "provider/soft/soft_fast_region.h"

#include <atomic>
#include <optional>
#include <thread>

#include "provider/soft/soft_fixture_test.h"

namespace rnicd::provider {
namespace {

constexpr VirtualAddress kBase{0x5000};

class SoftFastRegionTest : public ::testing::Test {
 protected:
  std::shared_ptr<SoftFastRegion> Create() {
    const auto region = SoftFastRegion::Create(card_.nic(), kDomain);
    EXPECT_TRUE(region.ok()) << region.status();
    return *region;
  }
  FastRegisterWork Work(const AccessRights& rights = kAllRights) {
    return {.base = kBase, .length = kPage, .rights = rights, .runs = runs_, .backing = std::move(backing_)};
  }
  // Registers under a new token, as a queue pair does.
  RemoteToken Register(SoftFastRegion& region, const AccessRights& rights = kAllRights) {
    FastRegisterWork work = Work(rights);
    const RemoteToken token = region.IssueToken();
    EXPECT_TRUE(region.Register(work, token));
    return token;
  }
  bool Reaches(RemoteToken token, SoftAccess access = SoftAccess::kRemoteRead, uint64_t domain = kDomain) {
    SoftPins pins;
    return pins.Add(card_.nic()->keys().Find(token), {.domain = domain}, access, kBase, kPage);
  }
  bool Reaches(LocalToken token, SoftAccess access = SoftAccess::kLocalRead) {
    SoftPins pins;
    return pins.Add(card_.nic()->keys().Find(token), {.domain = kDomain}, access, kBase, kPage);
  }

  SoftCard card_;
  std::vector<std::byte> page_ = std::vector<std::byte>(kPage);
  std::vector<std::span<std::byte>> runs_ = {std::span(page_)};
  std::shared_ptr<int> backing_ = std::make_shared<int>(0);
};

// Two posted requests have two tokens; the token of the executed one is valid.
TEST_F(SoftFastRegionTest, ARegistrationKeepsItsOwnTokenWhenAnotherIsIssuedMeanwhile) {
  const auto region = Create();
  const RemoteToken first = Register(*region);
  const RemoteToken second = region->IssueToken();
  EXPECT_TRUE(Reaches(first));
  EXPECT_FALSE(Reaches(second));
  EXPECT_EQ(region->remote_token(), second);
}

TEST_F(SoftFastRegionTest, TheDestructorGivesBackKeysAndBacking) {
  const std::weak_ptr<int> backing = backing_;
  auto region = Create();
  const RemoteToken token = Register(*region);
  EXPECT_EQ(card_.nic()->keys().size(), 1u);
  region.reset();
  EXPECT_EQ(card_.nic()->keys().size(), 0u);
  EXPECT_FALSE(Reaches(token));
  EXPECT_TRUE(backing.expired());
}

TEST_F(SoftFastRegionTest, EachRightAllowsItsOwnTransferOnly) {
  const auto region = Create();
  RemoteToken token = Register(*region, {.remote_read = true});
  EXPECT_TRUE(Reaches(token, SoftAccess::kRemoteRead));
  EXPECT_FALSE(Reaches(token, SoftAccess::kRemoteWrite));
  EXPECT_FALSE(Reaches(region->local_token(), SoftAccess::kLocalWrite));
  EXPECT_FALSE(Reaches(token, SoftAccess::kRemoteRead, kDomain + 1)) << "the wall holds here too";
  EXPECT_TRUE(region->Invalidate());
  token = Register(*region, {.local_write = true, .remote_write = true});
  EXPECT_FALSE(Reaches(token, SoftAccess::kRemoteRead));
  EXPECT_TRUE(Reaches(token, SoftAccess::kRemoteWrite));
  EXPECT_TRUE(Reaches(region->local_token(), SoftAccess::kLocalWrite));
}

TEST_F(SoftFastRegionTest, TheReadSinkRightIsAskedForOnlyWhereTheCardSaysSo) {
  const auto easy = Create();
  Register(*easy, {.local_write = true});
  EXPECT_TRUE(Reaches(easy->local_token(), SoftAccess::kReadSink));

  SoftCard strict({.adapter_flags = 0});
  const auto region = SoftFastRegion::Create(strict.nic(), kDomain);
  ASSERT_TRUE(region.ok());
  for (const bool granted : {false, true}) {
    FastRegisterWork work = Work({.local_write = true, .read_sink = granted});
    ASSERT_TRUE((*region)->Register(work, (*region)->IssueToken()));
    SoftPins pins;
    EXPECT_EQ(pins.Add(strict.nic()->keys().Find((*region)->local_token()), {.domain = kDomain}, SoftAccess::kReadSink,
                       kBase, kPage),
              granted);
    if (!granted) {
      EXPECT_TRUE((*region)->Invalidate());
    }
  }
}

TEST_F(SoftFastRegionTest, APeerOfItsDomainMayInvalidateItByItsToken) {
  const auto region = Create();
  const RemoteToken token = Register(*region);
  const std::shared_ptr<SoftTarget> target = card_.nic()->keys().Find(token);
  ASSERT_NE(target, nullptr);
  EXPECT_FALSE(target->InvalidateByToken({.domain = kDomain + 1}));
  EXPECT_TRUE(Reaches(token));
  EXPECT_TRUE(target->InvalidateByToken({.domain = kDomain}));
  EXPECT_FALSE(Reaches(token));
  EXPECT_FALSE(target->InvalidateByToken({.domain = kDomain})) << "once is enough";
}

// A peer that looked its token up before the registration ended must not end the next one with it.
TEST_F(SoftFastRegionTest, AStaleTokenDoesNotInvalidateTheNextRegistration) {
  const auto region = Create();
  const std::shared_ptr<SoftTarget> stale = card_.nic()->keys().Find(Register(*region));
  EXPECT_TRUE(region->Invalidate());
  const RemoteToken token = Register(*region);
  EXPECT_FALSE(stale->InvalidateByToken({.domain = kDomain}));
  EXPECT_TRUE(Reaches(token));
}

TEST_F(SoftFastRegionTest, AFullCardRefusesAnotherAndHasRoomAfterwards) {
  SoftCard small({.max_regions = 1});
  auto first = SoftFastRegion::Create(small.nic(), kDomain);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(FailedWith(SoftFastRegion::Create(small.nic(), kDomain).status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  first->reset();
  EXPECT_TRUE(SoftFastRegion::Create(small.nic(), kDomain).ok());
}

// After Retire nothing reaches the pages, even if another thread is ending the registration at that moment.
TEST_F(SoftFastRegionTest, RetireWaitsForAnInvalidationUnderWay) {
  const auto region = Create();
  const RemoteToken token = Register(*region);
  std::optional<SoftPins> pins(std::in_place);
  ASSERT_TRUE(pins->Add(card_.nic()->keys().Find(token), {.domain = kDomain}, SoftAccess::kRemoteRead, kBase, kPage));
  std::atomic<bool> copied{false};
  std::atomic<int> begun{0};
  std::thread invalidator([&] {
    region->Invalidate();  // Either may be the first to revoke.
    EXPECT_TRUE(copied);
  });
  while (card_.nic()->keys().Find(token) != nullptr) {
    std::this_thread::yield();
  }
  std::thread retirer([&] {
    ++begun;
    region->Retire();
    EXPECT_TRUE(copied) << "a transfer was still reaching the pages";
  });
  while (begun == 0) {
    std::this_thread::yield();
  }
  for (int turn = 0; turn < 1000; ++turn) {
    std::this_thread::yield();
  }
  copied = true;
  pins.reset();
  invalidator.join();
  retirer.join();
  EXPECT_FALSE(region->registered());
}

// When threads race for one registration, exactly one registers it and exactly one ends it.
TEST_F(SoftFastRegionTest, RacingRegistrationsAndInvalidationsTakeTurns) {
  const auto region = Create();
  std::atomic<int> registered{0};
  std::atomic<int> invalidated{0};
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        FastRegisterWork work{.base = kBase, .length = kPage, .rights = kAllRights, .runs = runs_};
        registered += region->Register(work, region->IssueToken()) ? 1 : 0;
        invalidated += region->Invalidate() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(registered, invalidated);
  EXPECT_FALSE(region->registered());
}

}  // namespace
}  // namespace rnicd::provider
