#include "daemon/status_page/recent_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "base/status.h"

namespace rnicd::status_page {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class RecentFailuresTest : public ::testing::Test {
 protected:
  void Refuse(const std::string& tenant, pid_t pid, ErrorReason reason = ErrorReason::QUOTA_PINNED_BYTES,
              const std::string& what = "MemoryService.RegisterMr") {
    time_ += std::chrono::milliseconds(1);
    core::Caller caller;
    caller.pid = pid;
    caller.uid = 1000;
    failures_.Report(core::Decision{
        .what = what, .caller = &caller, .tenant = tenant, .status = MakeError(reason, "length"), .note = "note"});
  }

  WallTime time_{std::chrono::seconds(1'700'000'000)};
  RecentFailures failures_{[this] { return time_; }};
};

TEST_F(RecentFailuresTest, ARowSaysWhoWhatAndWhy) {
  Refuse("storage", 17);
  const std::vector<Failure> rows = failures_.List();
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].what, "MemoryService.RegisterMr");
  EXPECT_EQ(rows[0].tenant, "storage");
  EXPECT_EQ(rows[0].pid, 17);
  EXPECT_EQ(rows[0].uid, 1000u);
  EXPECT_EQ(rows[0].reason, "QUOTA_PINNED_BYTES");
  EXPECT_EQ(rows[0].sentence, RowOf(ErrorReason::QUOTA_PINNED_BYTES).sentence);
  EXPECT_EQ(rows[0].field, "length");
  EXPECT_EQ(rows[0].note, "note");
  EXPECT_EQ(rows[0].last, time_);
}

TEST_F(RecentFailuresTest, WhatWasAllowedIsNoFailure) {
  failures_.Report(core::Decision{.what = "MemoryService.RegisterMr", .status = absl::OkStatus()});
  EXPECT_THAT(failures_.List(), IsEmpty());
}

TEST_F(RecentFailuresTest, AFailureWithoutAReasonHasItsCode) {
  failures_.Report(core::Decision{.what = "connection", .status = absl::ResourceExhaustedError("refused at accept")});
  const std::vector<Failure> rows = failures_.List();
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].reason, "RESOURCE_EXHAUSTED");
  EXPECT_EQ(rows[0].sentence, "");
  EXPECT_EQ(rows[0].pid, 0);
}

TEST_F(RecentFailuresTest, AFloodIsOneRow) {
  Refuse("other", 1);
  const WallTime first = time_ + std::chrono::milliseconds(1);
  for (int time = 0; time < 1204; ++time) {
    Refuse("storage", 17);
  }
  const std::vector<Failure> rows = failures_.List();
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].count, 1204u);
  EXPECT_EQ(rows[0].first, first);
  EXPECT_EQ(rows[0].last, time_);
  EXPECT_EQ(rows[1].tenant, "other");
}

TEST_F(RecentFailuresTest, RefusalsThatDifferHaveRowsOfTheirOwn) {
  Refuse("storage", 17);
  Refuse("storage", 18);
  Refuse("guests", 17);
  Refuse("storage", 17, ErrorReason::LENGTH_ZERO);
  Refuse("storage", 17, ErrorReason::QUOTA_PINNED_BYTES, "MemoryService.CreateMr");
  EXPECT_THAT(failures_.List(), SizeIs(5));
}

TEST_F(RecentFailuresTest, TheOldestGoesAndTheNewestIsFirst) {
  for (pid_t pid = 1; pid <= static_cast<pid_t>(RecentFailures::kMost) + 5; ++pid) {
    Refuse("storage", pid);
  }
  const std::vector<Failure> rows = failures_.List();
  ASSERT_THAT(rows, SizeIs(RecentFailures::kMost));
  EXPECT_EQ(rows.front().pid, static_cast<pid_t>(RecentFailures::kMost) + 5);
  EXPECT_EQ(rows.back().pid, 6);
}

TEST_F(RecentFailuresTest, ATenantOfManyProcessesWashesNobodyAway) {
  Refuse("quiet", 1);
  for (pid_t pid = 2; pid < 1000; ++pid) {
    Refuse("loud", pid);
  }
  EXPECT_EQ(failures_.List().back().tenant, "quiet");
}

TEST_F(RecentFailuresTest, TextsAreBounded) {
  Refuse(std::string(100'000, 't'), 1, ErrorReason::LENGTH_ZERO, std::string(100'000, 'w'));
  Refuse(std::string(100'000, 't'), 1, ErrorReason::LENGTH_ZERO, std::string(100'000, 'w'));
  const std::vector<Failure> rows = failures_.List();
  ASSERT_THAT(rows, SizeIs(1)) << "what was cut is no longer known again";
  EXPECT_LE(rows[0].tenant.size() + rows[0].what.size(), 1000u);
}

TEST_F(RecentFailuresTest, ManyThreadsLoseNoCount) {
  const auto refuse = [this] {
    for (int time = 0; time < 1000; ++time) {
      failures_.Report(core::Decision{.what = "fd", .status = MakeError(ErrorReason::LENGTH_ZERO)});
    }
  };
  std::thread one(refuse);
  std::thread two(refuse);
  one.join();
  two.join();
  ASSERT_THAT(failures_.List(), SizeIs(1));
  EXPECT_EQ(failures_.List()[0].count, 2000u);
}

}  // namespace
}  // namespace rnicd::status_page
