#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/calls/data_path.h"
#include "tests/support/calls/event_reader.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/daemon_process.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace testing {
class ScopedFakeTestPartResultReporter;
class TestPartResultArray;
}  // namespace testing

namespace rnicd::test {

// The edge cases of NDK's memory regions, tested on the whole daemon through its public RPCs, once for each provider.
// A test is named after the row it shows: Case016_... is row 16. The parameter is the provider's name.
// A run posts by calls or through rings (RNICD_TEST_DATA_PATH). At least one test of a row in gaps.txt must fail; the
// row's tests are then reported as passed. If all of them pass, the run fails.
class NdkConformance : public testing::TestWithParam<std::string> {
 protected:
  NdkConformance();
  ~NdkConformance() override;
  void SetUp() override;
  void TearDown() override;

  // A daemon that completes every request of these tests inline.
  DaemonProcess& daemon() { return daemon_with({}); }
  // A daemon whose registrations of a page or more pend if allowed, and can be held: HeldRegistrations.
  DaemonProcess& slow_daemon();
  // A daemon with low limits, whose registrations of a page or more pend if allowed.
  DaemonProcess& tight_daemon();
  // A daemon of the provider under test with these flags besides "--provider".
  DaemonProcess& daemon_with(std::vector<std::string> flags);

  static constexpr uint64_t kTightRegions = 8;
  static constexpr uint64_t kTightPinnedBytes = 1 << 20;
  static constexpr uint64_t kTightRegistrationBytes = 1 << 20;
  static constexpr uint64_t kTightDeviceRegions = 2;

 private:
  void CheckGap();

  std::vector<SharedDaemon*> used_;
  SharedMemoryUse used_before_;
  // The key in Gaps() of the gap whose test runs.
  std::optional<std::pair<std::string, std::string>> gap_;
  // Non-null while a test of a declared gap runs.
  std::unique_ptr<testing::TestPartResultArray> gap_results_;
  std::unique_ptr<testing::ScopedFakeTestPartResultReporter> gap_reporter_;
};

// Ends the session and returns the completions that had not been fetched; no more can follow.
std::vector<v1::RequestCompleted> CompletionsUntilEnd(TestSession& session, EventReader& events);

// Causes an event and expects it to be the next one: no other came before.
void ExpectNoEventSoFar(TestSession& session, EventReader& events);

// Registers the first `size` bytes of `memory_id` with pending allowed; expects STATUS_PENDING.
void RegisterPending(TestSession& session, uint64_t mr_id, uint64_t memory_id, uint64_t size, uint64_t context);

// A call that closes the session's adapter, on a thread of its own, while something below it is open.
class AdapterClose {
 public:
  explicit AdapterClose(TestSession& session)
      : closed_(std::async(std::launch::async, [this, &session] { return Call(session); })) {}
  // The close may end from now on, and not before.
  void MayEnd() { may_end_ = true; }
  void ExpectDone() { ExpectOk(closed_.get()); }

 private:
  CallResult<v1::CloseAdapterResponse> Call(TestSession& session) const {
    v1::CloseAdapterRequest close;
    close.set_adapter_id(session.adapter_id());
    auto answer = session.Call(&AdapterStub::CloseAdapter, close);
    EXPECT_TRUE(may_end_);
    return answer;
  }

  std::atomic<bool> may_end_ = false;
  std::future<CallResult<v1::CloseAdapterResponse>> closed_;
};

}  // namespace rnicd::test
