#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::test {

// A running daemon and its measurements when idle.
struct SharedDaemon {
  std::unique_ptr<DaemonProcess> process;
  IdleState idle;
};

// The daemon with these flags, started at the first call and shared by all tests that use the same flags; a daemon that
// died is a test failure and is restarted. All are stopped by SIGTERM at the end of the program, which must give exit
// code 0. Ends the program when no daemon can be started at all.
SharedDaemon& DaemonWith(const std::vector<std::string>& flags);

// A test that uses one shared daemon and must leave nothing behind in it.
class DaemonTest : public testing::Test {
 protected:
  explicit DaemonTest(const std::vector<std::string>& flags = {}) : shared_(DaemonWith(flags)) {}
  // The test's clients are closed by now, because they were its local variables.
  void TearDown() override { ExpectNothingHeld(daemon(), shared_.idle); }

  DaemonProcess& daemon() const { return *shared_.process; }
  const IdleState& idle() const { return shared_.idle; }

 private:
  SharedDaemon& shared_;
};

}  // namespace rnicd::test
