// A disk that hangs: the log's thread blocks, and no other thread does.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "daemon/audit/audit_log.h"
#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::audit {
namespace {

constexpr std::chrono::seconds kLong{60};

// Accepts every text completely, once it is released.
class HungDisk {
 public:
  AppendFile::Appended Take(std::string_view text) {
    entered_.set_value();
    released_future_.wait();
    entered_ = {};
    taken_ += text;
    return {.bytes = text.size()};
  }
  void AwaitHang() { entered_.get_future().wait(); }
  void Release() { released_.set_value(); }
  // Only when nothing is being written.
  const std::string& taken() const { return taken_; }

 private:
  std::promise<void> entered_;
  std::promise<void> released_;
  std::shared_future<void> released_future_ = released_.get_future().share();
  std::string taken_;
};

class AuditLogOnAHungDisk : public testing::Test {
 protected:
  AuditLogOnAHungDisk() {
    log_ = std::make_unique<AuditLog>(
        AuditOptions{.waiting_max = 10, .stop_timeout = std::chrono::milliseconds(0)}, clock_,
        [disk = disk_](std::string_view text) { return disk->Take(text); }, logger_);
    log_->Write({.what = "first"});
    disk_->AwaitHang();
  }

  ManualClock clock_;
  const log::Logger logger_{{.level = log::Level::kError}};
  const std::shared_ptr<HungDisk> disk_ = std::make_shared<HungDisk>();
  std::unique_ptr<AuditLog> log_;
};

TEST_F(AuditLogOnAHungDisk, NoCallWaitsAndWhatFindsNoRoomIsCounted) {
  for (int line = 0; line < 25; ++line) {
    log_->Write({.what = "next"});
  }
  EXPECT_EQ(log_->lost(), 15u);
  EXPECT_FALSE(log_->WaitUntilWritten(std::chrono::steady_clock::now()));
  EXPECT_FALSE(log_->FlushUntil(std::chrono::steady_clock::now()));
  disk_->Release();
  ASSERT_TRUE(log_->FlushUntil(std::chrono::steady_clock::now() + kLong));
  EXPECT_NE(disk_->taken().find(R"("what":"audit.lost","count":15})"), std::string::npos) << disk_->taken();
  EXPECT_EQ(std::count(disk_->taken().begin(), disk_->taken().end(), '\n'), 1 + 1 + 10);
}

TEST_F(AuditLogOnAHungDisk, TheEndLeavesTheThreadBehindAndSaysSo) {
  testing::internal::CaptureStderr();
  log_.reset();
  EXPECT_TRUE(logger_.FlushUntil(std::chrono::steady_clock::now() + kLong));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("the audit log did not take its last lines"), std::string::npos) << said;
  disk_->Release();
  // The thread ends; this is the last owner then.
  while (disk_.use_count() > 1) {
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace rnicd::audit
