#include "tests/soak/role.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <string_view>

#include "base/error_reason.h"
#include "base/status.h"

namespace rnicd::soak {
namespace {

// Runs until killed.
void PlayLeader(const RoleOptions&, Dice&) {
  while (true) {
    pause();
  }
}

struct Entry {
  std::string_view name;
  void (*play)(const RoleOptions&, Dice&);
};

constexpr std::array kRoles = {
    Entry{"good", PlayGood},
    Entry{"ringer", PlayGood},
    Entry{"crasher", PlayCrasher},
    Entry{"frozen", PlayFrozen},
    Entry{"hog", PlayHog},
    Entry{"seeker", PlaySeeker},
    Entry{"grantee", PlayGrantee},
    Entry{"flooder", PlayFlooder},
    Entry{"liar", PlayLiar},
    Entry{"forker", PlayForker},
    Entry{"reconnector", PlayReconnector},
    Entry{"keeper", PlayKeeper},
    Entry{"besieger", PlayBesieger},
    Entry{"raider", PlayRaider},
    // Not a client: keeps the process group of the clients alive.
    Entry{"leader", PlayLeader},
};

void WriteLine(const std::string& line) {
  const std::string text = line + "\n";
  // The driver reads continuously; if it has exited, this process exits too.
  if (write(kReportFd, text.data(), text.size()) < 0) {
    _exit(3);
  }
}

bool BecomeUser(uid_t uid) {
  if (uid == 0) {
    return true;
  }
  const gid_t gid = uid;
  return setgroups(0, nullptr) == 0 && setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0;
}

}  // namespace

void ReportDone(const std::string& what, uint64_t count) {
  if (count > 0) {
    WriteLine("did " + what + " " + std::to_string(count));
  }
}

void ReportRefused(const std::string& reason, uint64_t count) {
  if (count > 0) {
    WriteLine("refused " + reason + " " + std::to_string(count));
  }
}

void ReportWrong(const std::string& text) {
  std::string line = "wrong " + text.substr(0, 1000) + " (pid " + std::to_string(getpid()) + ")";
  for (char& c : line) {
    c = c == '\n' ? ' ' : c;
  }
  WriteLine(line);
}

void ReportHolding() { WriteLine("holding " + std::to_string(getpid())); }
void ReportHeir(pid_t pid) { WriteLine("heir " + std::to_string(pid)); }

std::string LimitReason(const absl::Status& status) {
  if (status.ok()) {
    return "";
  }
  const std::string_view name = RowOf(ErrorInfoOf(status).reason).name;
  return name.starts_with("QUOTA_") || name == "RATE_LIMITED" ? std::string(name) : "";
}

int PlayRole(const RoleOptions& options) {
  const rlimit no_core = {.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (!BecomeUser(options.uid)) {
    std::perror("rnicd_soak: becoming another user");
    return 2;
  }
  // Set after the change of user, which clears it, so that no client outlives the driver.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Dice dice(options.seed);
  for (const Entry& entry : kRoles) {
    if (entry.name == options.role) {
      entry.play(options, dice);
      // Skips a sanitizer's checks at exit: the daemon is under test, and they cannot inspect a process that has
      // changed its user.
      _exit(0);
    }
  }
  std::fprintf(stderr, "rnicd_soak: no role \"%s\"\n", options.role.c_str());
  return 2;
}

}  // namespace rnicd::soak
