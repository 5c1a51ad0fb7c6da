#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "rnicd/v1/admin_service.pb.h"
#include "tests/support/process/daemon_process.h"

// The parts of rnicd_door_bench: what a storm of connections costs others, and what a door costs.
namespace rnicd::bench {

struct StormOptions {
  // Leaves it to the kernel on which processors crowd, daemon and victim run.
  bool spread = false;
};

// Prints a table: a victim's connections, alone and beside storms at its own socket and at others.
void PrintStorms(const StormOptions& options);
// One process of a storm: connects to the socket and leaves, without pause and for ever. `blocking`: connect waits for
// a place in the socket's queue, else it fails at once while the queue is full.
[[noreturn]] void Storm(const std::string& socket_path, bool blocking, const StormOptions& options);

// Prints a table: descriptors, memory, start of the daemon and time of CreateGrant.
void PrintCosts();

// Ends the program: a figure of a failed operation is worthless.
template <typename Value>
Value Must(absl::StatusOr<Value> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "rnicd_door_bench: %s\n", value.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(value);
}

// Creates a grant, with a door or with a secret.
v1::CreateGrantResponse MakeGrant(const test::DaemonProcess& daemon, const std::string& name, bool door);

}  // namespace rnicd::bench
