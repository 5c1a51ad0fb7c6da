#include "tests/soak/crowd.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <thread>

#include "tests/support/admin_client.h"
#include "tests/support/calls/raw_client.h"

namespace rnicd::soak {
namespace {

using std::chrono::milliseconds;

constexpr int kReportPipeBytes = 1 << 20;

// The roles, their frequencies and their users; policy.h has the same users.
struct Draw {
  const char* role;
  uint64_t weight;
  uid_t uid;
};
constexpr std::array kDraws = {
    Draw{"good", 24, 60001},   Draw{"crasher", 16, 60002}, Draw{"frozen", 8, 60002},      Draw{"hog", 8, 60002},
    Draw{"ringer", 10, 60001}, Draw{"raider", 10, 60010},  Draw{"flooder", 6, 60003},     Draw{"seeker", 8, 60004},
    Draw{"liar", 10, 60005},   Draw{"forker", 8, 60006},   Draw{"reconnector", 6, 60006}, Draw{"grantee", 6, 60007},
    Draw{"keeper", 6, 60008},  Draw{"besieger", 4, 60009},
};

const Draw& DrawRole(Dice& dice) {
  uint64_t all = 0;
  for (const Draw& draw : kDraws) {
    all += draw.weight;
  }
  uint64_t at = dice.Below(all);
  for (const Draw& draw : kDraws) {
    if (at < draw.weight) {
      return draw;
    }
    at -= draw.weight;
  }
  return kDraws[0];
}

// Time after which a process that should end by itself counts as hung.
milliseconds LifetimeMax() { return 12 * test::kTimeout; }

}  // namespace

Crowd::Crowd(const test::DaemonProcess& daemon, uint64_t seed, bool users)
    : daemon_(daemon), seed_(seed), users_(users), dice_(seed) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) == 0) {
    report_read_ = UniqueFd(ends[0]);
    report_write_ = UniqueFd(ends[1]);
    fcntl(report_read_.get(), F_SETFL, O_NONBLOCK);
    fcntl(report_write_.get(), F_SETPIPE_SZ, kReportPipeBytes);
  }
  errors_ = UniqueFd(
      open((daemon.directory()->path() + "/clients.err").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  // Orphaned processes become children of this one, so that it can wait for them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  leader_ = Spawn({.role = "leader"});
}

Crowd::~Crowd() {
  if (leader_ > 0) {
    kill(-leader_, SIGKILL);
    while (waitpid(-leader_, nullptr, 0) > 0) {
    }
  }
}

pid_t Crowd::Spawn(const RoleOptions& options) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, errors_.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors_.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, report_write_.get(), kReportFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, kReportFd + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, std::max(leader_, 0));
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> words = {"rnicd_soak",
                                    "--role=" + options.role,
                                    "--socket_dir=" + options.socket_dir,
                                    "--seed=" + std::to_string(options.seed),
                                    "--uid=" + std::to_string(options.uid),
                                    "--secret=" + options.secret};
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

std::string Crowd::GrantFor(Member& member) {
  v1::CreateGrantRequest request;
  request.set_name("soak-" + std::to_string(number_));
  request.mutable_limits()->set_memory_bytes(64 << 20);
  request.mutable_limits()->set_sessions(4);
  const auto created = test::CreateGrant(daemon_, request);
  if (!created.ok()) {
    AddWrong("no grant: " + created.message);
  }
  member.grant_id = created.response.grant_id();
  return created.response.secret();
}

void Crowd::StartOne() {
  const Draw& draw = DrawRole(dice_);
  ++number_;
  const auto now = Clock::now();
  Member member{.role = draw.role, .started = now};
  RoleOptions options{.role = draw.role,
                      .socket_dir = daemon_.socket_dir(),
                      .seed = seed_ * 1'000'003 + number_,
                      .uid = users_ ? draw.uid : 0};
  if (member.role == "grantee") {
    options.secret = GrantFor(member);
    member.revoke_at = now + milliseconds(dice_.Below(3000));
  } else if (member.role == "crasher") {
    member.kill_at = now + milliseconds(dice_.Below(3000) * static_cast<uint64_t>(test::kSlowness));
  } else if (member.role == "frozen") {
    member.stop_at = now + milliseconds(dice_.Below(4000));
    member.kill_at = member.stop_at + milliseconds(500 + dice_.Below(5000));
  }
  const pid_t pid = Spawn(options);
  if (pid < 0) {
    AddWrong("a client cannot be started");
    return;
  }
  ++tally_.started[member.role];
  members_.emplace(pid, std::move(member));
}

void Crowd::Tick() {
  Hear();
  Reap();
  for (auto& [pid, member] : members_) {
    DoWhatIsDue(pid, member);
  }
}

void Crowd::DoWhatIsDue(pid_t pid, Member& member) {
  const auto now = Clock::now();
  if (now >= member.revoke_at) {
    Revoke(member);
  }
  if (now >= member.stop_at && !member.stopped) {
    kill(pid, SIGSTOP);
    member.stopped = true;
    ++tally_.frozen;
  }
  if (now >= member.kill_at) {
    Kill(pid, member);
  } else if (now > member.started + LifetimeMax() && !member.killed) {
    AddWrong(member.role + " has not ended in " + std::to_string(LifetimeMax().count()) + " ms");
    Kill(pid, member);
  }
}

void Crowd::Kill(pid_t pid, Member& member) {
  if (!member.killed) {
    kill(pid, SIGKILL);
    member.killed = true;
    ++tally_.killed;
  }
}

void Crowd::Revoke(Member& member) {
  member.revoke_at = Clock::time_point::max();
  if (const auto revoked = test::RevokeGrant(daemon_, member.grant_id); !revoked.ok()) {
    AddWrong("a grant cannot be revoked: " + revoked.message);
  }
  ++tally_.revoked;
}

void Crowd::Hear() {
  std::array<char, 65536> bytes;
  for (ssize_t count = 0; (count = read(report_read_.get(), bytes.data(), bytes.size())) > 0;) {
    heard_.append(bytes.data(), static_cast<size_t>(count));
  }
  size_t from = 0;
  for (size_t end = 0; (end = heard_.find('\n', from)) != std::string::npos; from = end + 1) {
    HearLine(std::string_view(heard_).substr(from, end - from));
  }
  heard_.erase(0, from);
}

void Crowd::HearLine(std::string_view line) {
  const size_t space = line.find(' ');
  const std::string_view kind = line.substr(0, space);
  const std::string rest(line.substr(std::min(space, line.size() - 1) + 1));
  const size_t last = rest.rfind(' ');
  if (kind == "wrong") {
    AddWrong(rest);
  } else if (kind == "holding") {
    if (const auto found = members_.find(std::atoi(rest.c_str())); found != members_.end()) {
      found->second.holding = true;
    }
  } else if (kind == "heir") {
    members_.emplace(std::atoi(rest.c_str()), Member{.role = "heir", .started = Clock::now()});
  } else if (last != std::string::npos) {
    (kind == "did" ? tally_.did : tally_.refused)[rest.substr(0, last)] += std::strtoull(&rest[last], nullptr, 10);
  }
}

void Crowd::Reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-leader_, &status, WNOHANG)) > 0;) {
    // Read what the process reported before it ended, an heir's pid above all.
    Hear();
    const auto found = members_.find(pid);
    if (found == members_.end()) {
      continue;
    }
    if (found->second.revoke_at != Clock::time_point::max()) {
      Revoke(found->second);
    }
    CheckExit(found->second, status);
    members_.erase(found);
  }
}

void Crowd::CheckExit(const Member& member, int status) {
  const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL;
  const bool fine = member.killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                    (member.role == "hog" && (aborted || WIFEXITED(status)));
  if (!fine) {
    AddWrong(member.role + " ended with " +
             (WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                  : "exit status " + std::to_string(WEXITSTATUS(status))));
  }
}

bool Crowd::FrozenOnesAreCharged() {
  Hear();
  v1::ListSessionsRequest request;
  request.set_page_size(10'000);
  const auto answer = test::RawClient(daemon_.admin_socket()).Call(&test::AdminStub::ListSessions, request);
  if (!answer.ok()) {
    // DaemonLives() detects a dead daemon.
    return true;
  }
  const auto& sessions = answer.response.sessions();
  return std::all_of(members_.begin(), members_.end(), [&](const auto& entry) {
    if (!entry.second.holding || entry.second.killed) {
      return true;
    }
    return std::any_of(sessions.begin(), sessions.end(), [&](const v1::SessionInfo& session) {
      return session.pid() == entry.first &&
             std::any_of(session.resources().begin(), session.resources().end(),
                         [](const v1::ResourceUse& use) { return use.name() == "pinned_bytes" && use.used() > 0; });
    });
  });
}

void Crowd::Finish(bool at_once) {
  const auto wait_until = Clock::now() + test::kTimeout;
  while (!members_.empty()) {
    Tick();
    for (auto& [pid, member] : members_) {
      if (at_once || Clock::now() > wait_until || member.role == "crasher" || member.role == "frozen") {
        Kill(pid, member);
      }
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
}

std::string Crowd::ErrorsTail() const {
  constexpr off_t kTailBytes = 8000;
  const off_t size = lseek(errors_.get(), 0, SEEK_END);
  std::string text(static_cast<size_t>(std::clamp<off_t>(size, 0, kTailBytes)), '\0');
  const ssize_t count = pread(errors_.get(), text.data(), text.size(), std::max<off_t>(0, size - kTailBytes));
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

}  // namespace rnicd::soak
