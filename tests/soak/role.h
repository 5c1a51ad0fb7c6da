#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>

#include "absl/status/status.h"

// What a client process of the soak does. The driver starts this program again with the name of a role; the process
// gives up root before anything else, plays, and tells the driver over a pipe what came of it.
namespace rnicd::soak {

struct RoleOptions {
  std::string role;
  std::string socket_dir;
  // Of a grant; empty for most.
  std::string secret;
  uint64_t seed = 0;
  // Absent, as 0: stay who we are.
  uid_t uid = 0;
};

// Draws of one process; the seed of the run and the number of the process give the same ones again.
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

// The descriptor on which a role tells the driver; each line goes out in one write.
inline constexpr int kReportFd = 3;

// "did sessions 3", "refused QUOTA_REGIONS 1". A client that is killed has told all it did until then.
void ReportDone(const std::string& what, uint64_t count = 1);
void ReportRefused(const std::string& reason, uint64_t count = 1);
// Something that must not be; fails the whole run.
void ReportWrong(const std::string& text);
// It has memory and regions, and keeps them until it is killed.
void ReportHolding();
// A child that outlives this process with its sockets.
void ReportHeir(pid_t pid);

// The name of a reason that says no to a client that asks for too much; empty for every other status.
std::string LimitReason(const absl::Status& status);

// The roles, one function each; each returns soon unless its comment says otherwise.
// Everything a well-behaved workload does, which must succeed.
void PlayGood(const RoleOptions& options, Dice& dice);
// The same again and again, until killed.
void PlayCrasher(const RoleOptions& options, Dice& dice);
// Holds memory and regions until killed.
void PlayFrozen(const RoleOptions& options, Dice& dice);
// Runs out of memory while it holds regions; aborts.
void PlayHog(const RoleOptions& options, Dice& dice);
// Registers until a limit says no, and looks at the figures of the refusal.
void PlaySeeker(const RoleOptions& options, Dice& dice);
// A grant's tenant, whose grant is revoked meanwhile.
void PlayGrantee(const RoleOptions& options, Dice& dice);
// Calls as fast as it can.
void PlayFlooder(const RoleOptions& options, Dice& dice);
// Wrong ids, wrong chains, bytes that are no messages, wrong descriptors.
void PlayLiar(const RoleOptions& options, Dice& dice);
// Leaves its sockets to a child and dies.
void PlayForker(const RoleOptions& options, Dice& dice);
// Opens and closes connections fast.
void PlayReconnector(const RoleOptions& options, Dice& dice);

// Becomes the user and plays the role. The exit status of the process.
int PlayRole(const RoleOptions& options);

}  // namespace rnicd::soak
