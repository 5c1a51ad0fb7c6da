#pragma once

#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"
#include "tests/vm/bench/direct.h"

namespace rnicd::vm_bench {

// Each function measures one table and returns its rows.
// Registering and deregistering: one region at a time, and in batches; `in_turn` is a daemon that registers the regions
// of a batch one after the other.
nlohmann::json RegistrationRows(DirectCard& card, test::DaemonProcess& daemon, test::DaemonProcess& in_turn);
// What `--memory_pool` keeps ready in the daemon `pool` of ReadyRows.
inline constexpr char kPoolFlag[] = "--memory_pool=4KiB:256MiB";
// The time from no memory to registered memory.
nlohmann::json ReadyRows(DirectCard& card, test::DaemonProcess& daemon, test::DaemonProcess& pool);
// FastRegister and Invalidate; `windows` is a daemon that implements them by binding windows.
nlohmann::json FastRows(DirectCard& card, test::DaemonProcess& daemon, test::DaemonProcess& windows);

// One write, from posting it to its completion.
nlohmann::json WriteRows(DirectCard& card, test::DaemonProcess& daemon);

}  // namespace rnicd::vm_bench
