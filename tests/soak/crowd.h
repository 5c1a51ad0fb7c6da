#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/unique_fd.h"
#include "tests/soak/role.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::soak {

inline constexpr size_t kWrongMax = 50;

// Totals so far.
struct Tally {
  std::map<std::string, uint64_t> started;
  std::map<std::string, uint64_t> did;
  std::map<std::string, uint64_t> refused;
  uint64_t killed = 0;
  uint64_t frozen = 0;
  uint64_t revoked = 0;
  // Errors, each of which fails the run.
  std::vector<std::string> wrong;
};

// The client processes: starts them in their roles, stops, kills and reaps them, and reads their reports. They form one
// process group, so that every remaining process, including a child of a dead one, can be killed.
// Lifetime: the destructor kills all of them.
// Threads:  one thread.
class Crowd {
 public:
  // `users` is false without root: all roles then run as the current user.
  Crowd(const test::DaemonProcess& daemon, uint64_t seed, bool users);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  // False if processes cannot be started.
  bool ready() const { return leader_ > 0 && report_read_.valid(); }
  // Starts one more process in a random role.
  void StartOne();
  // Reads reports, reaps processes and does what is due; call it every few milliseconds.
  void Tick();
  // True if the daemon still has, for every frozen process that holds memory, a session with that memory.
  bool FrozenOnesAreCharged();
  // Waits for processes that end by themselves and kills the others (all of them if `at_once`); returns when all are
  // reaped.
  void Finish(bool at_once);

  size_t size() const { return members_.size(); }
  const Tally& tally() const { return tally_; }
  // Keeps the first errors only: one bug may cause thousands.
  void AddWrong(const std::string& text) {
    if (tally_.wrong.size() < kWrongMax) {
      tally_.wrong.push_back(text);
    }
  }
  // The last lines that clients wrote to their standard error.
  std::string ErrorsTail() const;

 private:
  struct Member {
    std::string role;
    Clock::time_point started;
    // Time of SIGSTOP; max() means never.
    Clock::time_point stop_at = Clock::time_point::max();
    Clock::time_point kill_at = Clock::time_point::max();
    Clock::time_point revoke_at = Clock::time_point::max();
    uint64_t grant_id = 0;
    bool holding = false;
    bool stopped = false;
    bool killed = false;
  };

  pid_t Spawn(const RoleOptions& options);
  void Hear();
  void HearLine(std::string_view line);
  void Reap();
  void CheckExit(const Member& member, int status);
  void Kill(pid_t pid, Member& member);
  void DoWhatIsDue(pid_t pid, Member& member);
  std::string GrantFor(Member& member);
  void Revoke(Member& member);

  const test::DaemonProcess& daemon_;
  const uint64_t seed_;
  const bool users_;
  Dice dice_;
  uint64_t number_ = 0;
  UniqueFd report_read_;
  UniqueFd report_write_;
  UniqueFd errors_;
  // Process whose only purpose is to keep the group alive.
  pid_t leader_ = -1;
  std::string heard_;
  std::map<pid_t, Member> members_;
  Tally tally_;
};

}  // namespace rnicd::soak
