#pragma once

#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"
#include "tests/vm/bench/direct.h"

namespace rnicd::vm_bench {

// Each function measures one table and returns its rows.
// Registering and deregistering: one region at a time, and in batches.
nlohmann::json RegistrationRows(DirectCard& card, test::DaemonProcess& daemon);
// The time from no memory to registered memory.
nlohmann::json ReadyRows(DirectCard& card, test::DaemonProcess& daemon);
// FastRegister and Invalidate; `windows` is a daemon that implements them by binding windows.
nlohmann::json FastRows(DirectCard& card, test::DaemonProcess& daemon, test::DaemonProcess& windows);

// One write, from posting it to its completion.
nlohmann::json WriteRows(DirectCard& card, test::DaemonProcess& daemon);

}  // namespace rnicd::vm_bench
