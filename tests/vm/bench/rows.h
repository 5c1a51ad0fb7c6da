#pragma once

#include <chrono>

#include "nlohmann/json.hpp"
#include "tests/support/process/daemon_process.h"
#include "tests/vm/bench/asked_process.h"
#include "tests/vm/bench/direct.h"

namespace rnicd::vm_bench {

// Each function measures one table and returns its rows.
inline constexpr uint64_t kLargeRegion = 64 * kMiB;
// How much memory the rows about mapping a page map.
inline constexpr uint64_t kMappedBytes = 1024 * kMiB;
inline constexpr std::chrono::seconds kWaitMax{60};
struct RegistrationDaemons {
  test::DaemonProcess& usual;
  // Registers the regions of a batch one after the other.
  test::DaemonProcess& in_turn;
  // Other processes without rnicd: for a region of kLargeRegion, and for a page, which is the cost of asking.
  const AskedProcess& asked_for_large;
  const AskedProcess& asked_for_page;
};
// Registering and deregistering: one region at a time, and in batches.
nlohmann::json RegistrationRows(DirectCard& card, const RegistrationDaemons& daemons);
// What `--memory_pool` keeps ready in the daemon `pool` of ReadyRows.
inline constexpr char kPoolFlag[] = "--memory_pool=4KiB:256MiB";
// The time from no memory to registered memory.
nlohmann::json ReadyRows(DirectCard& card, test::DaemonProcess& daemon, test::DaemonProcess& pool);
// One for each engine of fast registrations.
struct FastDaemons {
  test::DaemonProcess& registrations;
  test::DaemonProcess& windows;
  // The kernel module's.
  test::DaemonProcess& kernel;
};
// FastRegister and Invalidate.
nlohmann::json FastRows(DirectCard& card, const FastDaemons& daemons);

// A chain of requests of the kernel module, and pages that it maps, without rnicd. In microseconds, not compared.
nlohmann::json ModuleRows();

// One write, from posting it to its completion.
nlohmann::json WriteRows(DirectCard& card, test::DaemonProcess& daemon);

}  // namespace rnicd::vm_bench
