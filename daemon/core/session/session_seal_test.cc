// Seals whose system calls a client blocks: they pend, the end of their session does not wait for them, and an owner
// with too many is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "daemon/core/memory/memory_object_fixture_test.h"
#include "daemon/core/session/core_fixture_test.h"
#include "daemon/core/tenant/caller.h"

namespace rnicd::core {
namespace {

// Calls that are blocked until the test releases one.
class HeldCalls final : public BlockingExecutor {
 public:
  Started Start(const std::string& owner, Job blocking, Job after) override {
    if (const std::function<void()> next = std::exchange(before_next, nullptr); next != nullptr) {
      next();
    }
    if (refuses) {
      return Started::kRefused;
    }
    owners.push_back(owner);
    calls_.emplace_back(std::move(blocking), std::move(after));
    return Started::kQueued;
  }
  void RunNext() {
    const auto [blocking, after] = std::move(calls_.front());
    calls_.pop_front();
    blocking();
    after();
  }

  bool refuses = false;
  std::function<void()> before_next;
  std::deque<std::string> owners;

 private:
  std::deque<std::pair<Job, Job>> calls_;
};

class SessionSealTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = wired_.registry.Open(CallerNumbered(1), "");
    ASSERT_TRUE(opened.ok());
    session_ = *std::move(opened);
  }
  void TearDown() override {
    if (session_ != nullptr) {
      End();
      session_.reset();
    }
    EXPECT_TRUE(wired_.registry.WaitUntilEmpty(std::chrono::steady_clock::now() + kTimeout));
    EXPECT_EQ(HeldBy(*wired_.ledger), "");
    ground_.workers.reset();
    ground_.reapers.reset();
  }
  void End() {
    Awaited<bool> ended;
    wired_.registry.End(session_, EndCause::kEvicted, [&ended](const Reclaimed& /*reclaimed*/) { ended.Set(true); });
    EXPECT_TRUE(ended.Get().has_value());
  }
  std::shared_ptr<MemoryObject> Imported() {
    const SessionGuard guard = *session_->Begin();
    std::shared_ptr<MemoryObject> memory = *guard.memory().Find(guard.memory().Import(kPage)->memory);
    EXPECT_TRUE(memory->Attach(MemoryFile(kPage)).ok());
    return memory;
  }
  MaybePending<> Seal(const std::shared_ptr<MemoryObject>& memory) {
    return session_->Begin()->memory().Seal(memory, [this](const absl::Status& status) { sealed_.Set(status); });
  }

  WorldGround ground_{WorldOptions()};
  HeldCalls calls_;
  WiredNode wired_{{.os = ground_.os,
                    .clock = ground_.clock,
                    .random = ground_.random,
                    .provider = ground_.provider,
                    .observer = ground_.observer,
                    .workers = *ground_.workers,
                    .reapers = *ground_.reapers,
                    .blocking = &calls_}};
  std::shared_ptr<Session> session_;
  Awaited<absl::Status> sealed_;
};

TEST_F(SessionSealTest, PendsUntilTheClientLetsItGoOn) {
  const auto memory = Imported();
  ASSERT_TRUE(Seal(memory).pending());
  EXPECT_THAT(calls_.owners, ::testing::ElementsAre(OwnerOf(session_->owner())));
  EXPECT_EQ(sealed_.times(), 0);
  EXPECT_THAT(memory->Release(), FailsWith(ErrorReason::MEMORY_IN_USE));
  calls_.RunNext();
  EXPECT_TRUE(sealed_.Get().value_or(absl::DeadlineExceededError("")).ok());
  EXPECT_TRUE(memory->BeginUse().ok());
}

TEST_F(SessionSealTest, AFailureLeavesTheMemoryAsItWas) {
  const auto memory = Imported();
  ground_.os.FailNext("AddSeals", MakeError(ErrorReason::MEMORY_SEAL_REFUSED), 1);
  ASSERT_TRUE(Seal(memory).pending());
  calls_.RunNext();
  EXPECT_THAT(sealed_.Get().value_or(absl::OkStatus()), FailsWith(ErrorReason::MEMORY_SEAL_REFUSED));
  EXPECT_TRUE(memory->Seal().ok());
}

TEST_F(SessionSealTest, AnOwnerWithTooManyBlockedCallsIsRefused) {
  const auto memory = Imported();
  calls_.refuses = true;
  EXPECT_THAT(Seal(memory).status(), FailsWith(ErrorReason::FD_BLOCKED));
  EXPECT_EQ(sealed_.times(), 0);
  EXPECT_TRUE(memory->Seal().ok());
}

TEST_F(SessionSealTest, TheEndOfTheSessionDoesNotWaitForIt) {
  ASSERT_TRUE(Seal(Imported()).pending());
  End();
  EXPECT_THAT(sealed_.Get().value_or(absl::OkStatus()), FailsWith(ErrorReason::SESSION_ENDING));
  EXPECT_EQ(HeldBy(*wired_.ledger), "");
  calls_.RunNext();
  EXPECT_EQ(sealed_.times(), 1);
}

TEST_F(SessionSealTest, TheCallsOutliveTheSession) {
  ASSERT_TRUE(Seal(Imported()).pending());
  End();
  session_.reset();
  EXPECT_TRUE(wired_.registry.WaitUntilEmpty(std::chrono::steady_clock::now() + kTimeout));
  calls_.RunNext();
  EXPECT_EQ(sealed_.times(), 1);
}

// The end of the session cancels the seals before the calls of this one are queued.
TEST_F(SessionSealTest, ASealThatMeetsTheEndIsCancelledOnce) {
  const auto memory = Imported();
  calls_.before_next = [this] {
    wired_.registry.End(session_, EndCause::kEvicted, [](const Reclaimed& /*reclaimed*/) {});
    EXPECT_TRUE(sealed_.Get().has_value());
  };
  calls_.refuses = true;
  EXPECT_TRUE(Seal(memory).pending());
  EXPECT_THAT(sealed_.Get().value_or(absl::OkStatus()), FailsWith(ErrorReason::SESSION_ENDING));
  EXPECT_EQ(sealed_.times(), 1);
}

}  // namespace
}  // namespace rnicd::core
