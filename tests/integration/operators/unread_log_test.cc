// The daemon's log is a pipe that nobody reads: a log collector that hangs.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/daemon_process.h"
#include "tests/support/process/full_pipe.h"
#include "tests/support/process/pipe_reader.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

class UnreadLog : public testing::Test {
 protected:
  void SetUp() override {
    auto daemon = DaemonProcess::Start(
        {.flags = {"--log_level=debug", kMetricsOnFreePort}, .stderr_file = pipe_.write_end.get()});
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    pipe_.write_end.Reset(-1);
  }
  double Dropped() const {
    return MetricsPage(HttpGet(AdminStatus(*daemon_).metrics_address(), "/metrics").body)
        .Value("rnicd_log_lines_dropped_total");
  }
  // Each is a line of the log at least.
  void CallInVain(int count) const {
    RawClient client(daemon_->rpc_socket());
    for (int call = 0; call < count; ++call) {
      ExpectRefused(client.Call(&AdapterStub::OpenAdapter, {}), ErrorReason::SESSION_REQUIRED);
    }
  }

  FullPipe pipe_;
  std::unique_ptr<DaemonProcess> daemon_;
};

TEST_F(UnreadLog, HundredsOfSessionsAreServedAndSigtermWorks) {
  for (int number = 0; number < 300; ++number) {
    TestSession session(*daemon_);
    ASSERT_NE(session.SealedMemory(kPage), 0u) << "session " << number;
  }
  const absl::Status stopped = daemon_->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

TEST_F(UnreadLog, WhatIsLostIsCountedAndSaidOnceItIsReadAgain) {
  EXPECT_EQ(Dropped(), 0);
  while (Dropped() == 0 && !HasFailure()) {
    CallInVain(500);
  }
  PipeReader reader(std::move(pipe_.read_end));
  ASSERT_TRUE(reader.WaitFor(" warning lines lost count=", kTimeout)) << reader.Text();
  const double dropped = Dropped();
  const absl::Status stopped = daemon_->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
  EXPECT_TRUE(reader.WaitForEnd(kTimeout));
  EXPECT_TRUE(reader.WaitFor(" info stopped\n", kTimeout));
  double said = 0;
  std::istringstream lines(reader.Text());
  for (std::string line; std::getline(lines, line);) {
    const size_t loss = line.find(" warning lines lost count=");
    said += loss == std::string::npos ? 0 : std::stod(line.substr(line.find('=') + 1));
  }
  EXPECT_EQ(said, dropped);
}

}  // namespace
}  // namespace rnicd::test
