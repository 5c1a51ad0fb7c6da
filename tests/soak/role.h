#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>

#include "absl/status/status.h"

// The client processes of the soak. The driver starts this program with the name of a role; the process first drops
// root, then runs the role and reports the results to the driver over a pipe.
namespace rnicd::soak {

using Clock = std::chrono::steady_clock;

struct RoleOptions {
  std::string role;
  std::string socket_dir;
  // Secret of a grant; empty for most roles.
  std::string secret;
  uint64_t seed = 0;
  // User to run as; 0 means the current user.
  uid_t uid = 0;
};

// Random numbers of one process, reproducible from the run's seed and the process's number.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  // 0 to `below` - 1.
  uint64_t Below(uint64_t below) { return engine_() % below; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  uint64_t Any() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// Descriptor on which a role reports to the driver; each line is one write.
inline constexpr int kReportFd = 3;

// "did sessions 3", "refused QUOTA_REGIONS 1". A killed client has reported everything it did before.
void ReportDone(const std::string& what, uint64_t count = 1);
void ReportRefused(const std::string& reason, uint64_t count = 1);
// Reports an error, which fails the whole run.
void ReportWrong(const std::string& text);
// Reports that this process holds memory and regions until killed.
void ReportHolding();
// Reports a child that outlives this process and holds its sockets.
void ReportHeir(pid_t pid);

// Name of the reason if a limit caused the refusal; empty for every other status.
std::string LimitReason(const absl::Status& status);

// The roles, one function each; each returns soon unless its comment says otherwise.
// Everything a well-behaved workload does, which must succeed; as "ringer" by rings, and by calls only what rings do
// not carry.
void PlayGood(const RoleOptions& options, Dice& dice);
// Repeats PlayGood until killed.
void PlayCrasher(const RoleOptions& options, Dice& dice);
// Holds memory and regions until killed.
void PlayFrozen(const RoleOptions& options, Dice& dice);
// Runs out of memory while it holds regions; aborts.
void PlayHog(const RoleOptions& options, Dice& dice);
// Registers until a limit refuses, and checks the figures of the refusal.
void PlaySeeker(const RoleOptions& options, Dice& dice);
// Runs as a grant's tenant until the grant is revoked.
void PlayGrantee(const RoleOptions& options, Dice& dice);
// Calls as fast as it can.
void PlayFlooder(const RoleOptions& options, Dice& dice);
// Sends wrong ids, wrong chains, malformed messages and wrong descriptors.
void PlayLiar(const RoleOptions& options, Dice& dice);
// Leaves its sockets to a child and dies.
void PlayForker(const RoleOptions& options, Dice& dice);
// Opens and closes connections fast.
void PlayReconnector(const RoleOptions& options, Dice& dice);

// Keeps what it has released, in itself or in a child.
void PlayKeeper(const RoleOptions& options, Dice& dice);
// One of the attacks of tests/support/hostile/ring_attacks.h.
void PlayRaider(const RoleOptions& options, Dice& dice);
// Floods the front door with frames of every kind, and reads nothing.
void PlayBesieger(const RoleOptions& options, Dice& dice);

// Switches to the user and runs the role. Returns the exit status of the process.
int PlayRole(const RoleOptions& options);

}  // namespace rnicd::soak
