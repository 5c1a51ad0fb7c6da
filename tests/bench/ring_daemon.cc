#include "tests/bench/ring_bench.h"
#include "tests/bench/ring_turns.h"

namespace rnicd::bench {

const char* TitleOf(Cores cores) {
  return cores == Cores::kOne ? "one core, nobody spins" : "client and daemon on a core each, both spin";
}

std::chrono::microseconds SpinOf(Cores cores) { return std::chrono::microseconds(cores == Cores::kOne ? 0 : 200); }

std::unique_ptr<test::DaemonProcess> StartDaemon(Cores cores) {
  Pin(cores == Cores::kOne ? 0 : 1);
  auto daemon = StartDaemon({"--ring_spin_us=" + std::to_string(SpinOf(cores).count()), "--ring_spin_percent=100"});
  Pin(0);
  return daemon;
}

// No request pends, and no limit is met.
std::unique_ptr<test::DaemonProcess> StartDaemon(std::vector<std::string> flags) {
  for (const char* flag :
       {"--pending_threshold_bytes=9000000000000000000", "--log_level=warning", "--max_heap_bytes=0"}) {
    flags.emplace_back(flag);
  }
  flags.push_back(test::LimitsFlag("session_limits { regions: 1000000000 }"));
  return Must(test::DaemonProcess::Start({.flags = flags}));
}

}  // namespace rnicd::bench
