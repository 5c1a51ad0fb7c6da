#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/daemon_process.h"
#include "tests/support/event_reader.h"
#include "tests/support/expect.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace testing {
class ScopedFakeTestPartResultReporter;
class TestPartResultArray;
}  // namespace testing

namespace rnicd::test {

// The edge cases of NDK's memory regions, asked of the whole daemon over its public wire, once for each provider.
// A test is named after the row it shows: Case016_... is row 16. The parameter is the provider's name.
// Of a row that gaps.txt declares at least one test must fail; its tests are then reported as passed. When all of them
// pass, the run fails.
class NdkConformance : public testing::TestWithParam<std::string> {
 protected:
  NdkConformance();
  ~NdkConformance() override;
  void SetUp() override;
  void TearDown() override;

  // Answers every request of these tests at once.
  DaemonProcess& daemon() { return daemon_with({}); }
  // Every registration of a page or more pends when it may, and takes so long that a test can act meanwhile.
  DaemonProcess& slow_daemon();
  // Every registration of a page or more pends when it may, and little of everything is to be had.
  DaemonProcess& tight_daemon();
  // The provider under test with these flags of the daemon; its flags come on top of "--provider".
  DaemonProcess& daemon_with(std::vector<std::string> flags);

  static constexpr uint64_t kTightRegions = 8;
  static constexpr uint64_t kTightPinnedBytes = 1 << 20;
  static constexpr uint64_t kTightRegistrationBytes = 1 << 20;
  static constexpr uint64_t kTightDeviceRegions = 2;

 private:
  void CheckGap();

  std::vector<SharedDaemon*> used_;
  // Set while a declared gap runs.
  std::unique_ptr<testing::TestPartResultArray> gap_results_;
  std::unique_ptr<testing::ScopedFakeTestPartResultReporter> gap_reporter_;
};

// Ends the session and returns the completions that had not been fetched, after which there can be no more.
std::vector<v1::RequestCompleted> CompletionsUntilEnd(TestSession& session, EventReader& events);

// Registers the first `size` bytes of `memory_id` with leave to pend; expects STATUS_PENDING.
void RegisterPending(TestSession& session, uint64_t mr_id, uint64_t memory_id, uint64_t size, uint64_t context);

}  // namespace rnicd::test
