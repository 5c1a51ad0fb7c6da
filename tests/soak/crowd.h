#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "tests/soak/role.h"
#include "tests/support/daemon_process.h"

namespace rnicd::soak {

using Clock = std::chrono::steady_clock;

inline constexpr size_t kWrongMax = 50;

// What came of everything so far.
struct Tally {
  std::map<std::string, uint64_t> started;
  std::map<std::string, uint64_t> did;
  std::map<std::string, uint64_t> refused;
  uint64_t killed = 0;
  uint64_t frozen = 0;
  uint64_t revoked = 0;
  // Each fails the run.
  std::vector<std::string> wrong;
};

// The client processes: starts them in their roles, stops, kills and reaps them, and hears what they tell.
// They are a process group of their own, so that whoever is left over, also a child of one that died, can be ended.
// Lifetime: ends all of them when it goes.
// Threads:  one thread.
class Crowd {
 public:
  // `users` is false where there is no root: everybody then plays as the user that there is.
  Crowd(const test::DaemonProcess& daemon, uint64_t seed, bool users);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  // False when the processes cannot be started at all.
  bool ready() const { return leader_ > 0 && report_read_.valid(); }
  // One more, in a role that is drawn.
  void StartOne();
  // Hears, reaps, and does what is due: to be called every few milliseconds.
  void Tick();
  // True when every frozen process that holds memory still has a session with it at the daemon.
  bool FrozenOnesAreCharged();
  // Waits for those that end by themselves, kills the others, or all at once, and returns when all are reaped.
  void Finish(bool at_once);

  size_t size() const { return members_.size(); }
  const Tally& tally() const { return tally_; }
  // One fault may show a thousand times; the first say what it is.
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
    // Absent means: not at all.
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
  // Only keeps the group in being.
  pid_t leader_ = -1;
  std::string heard_;
  std::map<pid_t, Member> members_;
  Tally tally_;
};

}  // namespace rnicd::soak
