// Compares the cost of registering memory by libibverbs with the cost through rnicd. Run by scripts/bench --verbs in
// the guest of tests/vm.
//
// usage: rnicd_vm_bench [--only TABLE] RESULTS_FILE
//   --only   registration, ready, write, fast or module; default: all
// The last two need the kernel module rnicd_fr.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/vm/bench/rows.h"

namespace rnicd::vm_bench {
namespace {

std::unique_ptr<test::DaemonProcess> StartDaemon(const std::vector<std::string>& flags) {
  std::vector<std::string> all = {"--provider=verbs", std::string("--verbs_devices=") + kCard};
  all.insert(all.end(), flags.begin(), flags.end());
  auto daemon = test::DaemonProcess::Start({.flags = all});
  Require(daemon.ok(), daemon.status().ToString());
  return *std::move(daemon);
}

int Main(int argc, char** argv) {
  const std::string only = argc == 4 && std::string(argv[1]) == "--only" ? argv[2] : "";
  Require(argc == 2 || !only.empty(), "usage: rnicd_vm_bench [--only TABLE] RESULTS_FILE");
  // Selects the adapter that sessions open.
  setenv("RNICD_TEST_PROVIDER", "verbs", /*overwrite=*/1);
  setenv("RNICD_TEST_ADAPTER", kCard, /*overwrite=*/1);
  const AskedProcess asked_for_large(kLargeRegion);
  const AskedProcess asked_for_page(kSmallPage);
  DirectCard card;
  const auto daemon = StartDaemon({"--verbs_fast_engine=registration"});
  nlohmann::json rows = nlohmann::json::array();
  const auto add = [&rows](const nlohmann::json& more) { rows.insert(rows.end(), more.begin(), more.end()); };
  if (only.empty() || only == "registration") {
    const auto in_turn = StartDaemon({"--worker_threads=1"});
    add(RegistrationRows(
        card,
        {.usual = *daemon, .in_turn = *in_turn, .asked_for_large = asked_for_large, .asked_for_page = asked_for_page}));
    Require(in_turn->Stop().ok(), "the daemon with one worker did not stop well");
  }
  if (only.empty() || only == "ready") {
    const auto pool = StartDaemon({kPoolFlag});
    add(ReadyRows(card, *daemon, *pool));
    Require(pool->Stop().ok(), "the daemon with a pool did not stop well");
  }
  if (only.empty() || only == "write") {
    add(WriteRows(card, *daemon));
  }
  if (only.empty() || only == "module") {
    add(ModuleRows());
  }
  if (only.empty() || only == "fast") {
    const auto windows = StartDaemon({"--verbs_fast_engine=window", "--verbs_allow_unbounded_windows"});
    const auto kernel = StartDaemon({"--verbs_fast_engine=kernel"});
    add(FastRows(card, {.registrations = *daemon, .windows = *windows, .kernel = *kernel}));
    Require(windows->Stop().ok(), "the daemon with windows did not stop well");
    Require(kernel->Stop().ok(), "the daemon with the kernel module did not stop well");
  }
  Require(daemon->Stop().ok(), "the daemon did not stop well");
  std::ofstream file(argv[argc - 1]);
  file << rows.dump(1) << "\n";
  Require(file.good(), std::string("cannot write ") + argv[argc - 1]);
  return 0;
}

}  // namespace
}  // namespace rnicd::vm_bench

int main(int argc, char** argv) { return rnicd::vm_bench::Main(argc, argv); }
