#include "tests/soak/soak.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/soak/crowd.h"
#include "tests/soak/leak_check.h"
#include "tests/soak/policy.h"
#include "tests/support/calls/raw_client.h"

namespace rnicd::soak {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

volatile sig_atomic_t interrupted = 0;

std::string Sum(const std::map<std::string, uint64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  }
  return text.empty() ? "none" : text;
}

uint64_t Count(const std::map<std::string, uint64_t>& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

// The process that a line of the audit log is about.
std::string PidIn(const std::string& line) {
  constexpr std::string_view kKey = "\"pid\":";
  const size_t at = line.find(kKey);
  return at == std::string::npos ? "" : line.substr(at + kKey.size(), line.find(',', at) - at - kKey.size());
}

// One run: the daemon, the crowd, the leak check.
class Run {
 public:
  Run(const SoakOptions& options, std::unique_ptr<test::DaemonProcess> daemon)
      : options_(options),
        daemon_(std::move(daemon)),
        crowd_(*daemon_, options.seed, geteuid() == 0),
        leak_check_(*daemon_),
        began_(Clock::now()) {}

  int All();

 private:
  // Drives clients for `length`, then ends them all and runs the leak check. False if the run cannot continue.
  bool Spell(milliseconds length);
  void DriveUntil(Clock::time_point end);
  void Checkpoint();
  // Counts the lines of the audit log and starts a new one, as a rotation does. Keeps how the sessions ended of clients
  // that reported an error.
  void RotateAudit();
  // Whether a client with that process ID has reported an error.
  bool HasComplained(const std::string& pid) const;
  void Progress();
  void PrintTable() const;
  std::string Report() const;
  bool DaemonLives();
  int64_t Elapsed() const { return std::chrono::duration_cast<seconds>(Clock::now() - began_).count(); }

  const SoakOptions& options_;
  std::unique_ptr<test::DaemonProcess> daemon_;
  Crowd crowd_;
  LeakCheck leak_check_;
  const Clock::time_point began_;
  Clock::time_point last_progress_;
  uint64_t audit_lines_ = 0;
  // Sessions opened at the last count.
  uint64_t audited_sessions_ = 0;
  // Lines of the audit log.
  std::string ends_;
  bool daemon_died_ = false;
};

bool Run::DaemonLives() {
  if (!daemon_died_ && !daemon_->process().running()) {
    daemon_died_ = true;
    const auto end = daemon_->process().WaitForEnd(milliseconds(0));
    crowd_.AddWrong("the daemon died: signal " + std::to_string(end->signal) + ", exit code " +
                    std::to_string(end->exit_code));
    daemon_->process().errors().WaitForEnd(seconds(5));
    std::printf("--- the daemon's log ---\n%s\n", daemon_->log().c_str());
  }
  return !daemon_died_;
}

void Run::Progress() {
  last_progress_ = Clock::now();
  const Tally& tally = crowd_.tally();
  uint64_t started = 0;
  for (const auto& [role, count] : tally.started) {
    started += count;
  }
  std::printf("%5ld s: %zu clients (%lu started, %lu killed, %zu wrong); %s\n", static_cast<long>(Elapsed()),
              crowd_.size(), started, tally.killed, tally.wrong.size(), leak_check_.Summary().c_str());
  std::fflush(stdout);
}

void Run::DriveUntil(Clock::time_point end) {
  uint64_t ticks = 0;
  while (Clock::now() < end && !interrupted && DaemonLives()) {
    // Starts a few at a time, so that the running ones' reports are read in between.
    for (int i = 0; i < 2 && crowd_.size() < options_.clients; ++i) {
      crowd_.StartOne();
    }
    crowd_.Tick();
    if (++ticks % 200 == 0 && !crowd_.FrozenOnesAreCharged()) {
      crowd_.AddWrong("memory of a frozen process is not charged any more");
    }
    if (Clock::now() - last_progress_ > seconds(5)) {
      Progress();
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
}

bool Run::HasComplained(const std::string& pid) const {
  const std::vector<std::string>& wrong = crowd_.tally().wrong;
  return std::any_of(wrong.begin(), wrong.end(),
                     [&](const std::string& text) { return text.ends_with("(pid " + pid + ")"); });
}

void Run::RotateAudit() {
  const std::string path = daemon_->directory()->path() + "/audit.log";
  std::ifstream file(path);
  const uint64_t before = audit_lines_;
  for (std::string line; std::getline(file, line);) {
    ++audit_lines_;
    if (line.find("\"what\":\"session.end\"") != std::string::npos && HasComplained(PidIn(line))) {
      ends_ += "- " + line + "\n";
    }
  }
  const uint64_t sessions = Count(crowd_.tally().did, "sessions");
  if (audit_lines_ == before && sessions > audited_sessions_) {
    crowd_.AddWrong("the audit log has nothing of the last spell");
  }
  audited_sessions_ = sessions;
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

void Run::Checkpoint() {
  crowd_.Finish(interrupted != 0);
  if (!DaemonLives()) {
    return;
  }
  for (const std::string& wrong : leak_check_.Check(Count(crowd_.tally().did, "sessions"))) {
    crowd_.AddWrong(wrong);
  }
  RotateAudit();
  PrintTable();
}

bool Run::Spell(milliseconds length) {
  DriveUntil(Clock::now() + length);
  Checkpoint();
  return !interrupted && !daemon_died_;
}

void Run::PrintTable() const {
  const Figures& now = leak_check_.figures().back();
  const Tally& tally = crowd_.tally();
  std::printf(
      "-- minute %.1f at rest: %lu fds, %lu threads, %lu KiB resident, %lu maps; %lu audit lines\n"
      "   done: %s\n   refused: %s\n   roles: %s; %lu killed, %lu frozen, %lu grants revoked\n",
      now.minute, now.open_fds, now.threads, now.resident_kib, now.maps, audit_lines_, Sum(tally.did).c_str(),
      Sum(tally.refused).c_str(), Sum(tally.started).c_str(), tally.killed, tally.frozen, tally.revoked);
  for (const std::string& wrong : tally.wrong) {
    std::printf("   WRONG %s\n", wrong.c_str());
  }
  std::fflush(stdout);
}

std::string Run::Report() const {
  const Tally& tally = crowd_.tally();
  std::ostringstream text;
  text << "# Soak: " << (tally.wrong.empty() ? "nothing wrong" : std::to_string(tally.wrong.size()) + " wrong")
       << "\n\nSeed " << options_.seed << ", " << options_.clients << " clients at a time, " << Elapsed()
       << " s, clients of " << (geteuid() == 0 ? "seven users" : "one user (no root here)") << ".\n\n"
       << "| | |\n|---|---|\n| Clients, by role | " << Sum(tally.started) << " |\n| Killed | " << tally.killed
       << " |\n| Frozen | " << tally.frozen << " |\n| Grants revoked | " << tally.revoked << " |\n| Done | "
       << Sum(tally.did) << " |\n| Refused | " << Sum(tally.refused) << " |\n| Audit lines | " << audit_lines_
       << " |\n\nThe daemon at rest:\n\n| Minute | Sessions so far | fds | threads | KiB resident | maps |\n"
       << "|---:|---:|---:|---:|---:|---:|\n";
  for (const Figures& at : leak_check_.figures()) {
    char minute[32];
    std::snprintf(minute, sizeof(minute), "%.1f", at.minute);
    text << "| " << minute << " | " << at.sessions_opened << " | " << at.open_fds << " | " << at.threads << " | "
         << at.resident_kib << " | " << at.maps << " |\n";
  }
  if (leak_check_.SlopeKiB() != 0) {
    text << "\nResident memory over the later half: " << leak_check_.SlopeKiB() << " KiB a minute, "
         << leak_check_.BytesPerSession() << " bytes a session.\n";
  }
  for (const std::string& wrong : tally.wrong) {
    text << "\n- WRONG: " << wrong;
  }
  if (!ends_.empty()) {
    text << "\n\nHow the sessions of these clients ended, from the audit log:\n\n" << ends_;
  }
  text << "\n";
  return text.str();
}

int Run::All() {
  if (!crowd_.ready()) {
    std::fprintf(stderr, "rnicd_soak: cannot start client processes\n");
    return 1;
  }
  const milliseconds total(static_cast<int64_t>(options_.minutes * 60'000));
  // At least four checkpoints in a short run, one per minute in a long one.
  const milliseconds spell = std::min<milliseconds>(seconds(60), total / 4);
  std::printf("warm-up\n");
  // The baseline is taken after the daemon was under full load once.
  bool go_on = Spell(std::min<milliseconds>(seconds(30), total / 4));
  const auto end = Clock::now() + total;
  std::unique_ptr<test::RawClient> canary;
  if (options_.canary == "session") {
    canary = std::make_unique<test::RawClient>(daemon_->rpc_socket());
    canary->Call(&test::SessionStub::OpenSession, {});
  }
  // The remainder after the last checkpoint is too short for another.
  while (go_on && end - Clock::now() > spell / 4) {
    go_on = Spell(std::min(spell, std::chrono::duration_cast<milliseconds>(end - Clock::now())));
  }
  if (DaemonLives()) {
    if (const absl::Status stopped = daemon_->Stop(3 * test::kTimeout); !stopped.ok()) {
      crowd_.AddWrong("the end of the daemon: " + std::string(stopped.message()));
    }
  }
  const std::string report = Report();
  std::printf("\n%s", report.c_str());
  if (!options_.report.empty()) {
    std::ofstream(options_.report) << report;
  }
  if (!crowd_.tally().wrong.empty()) {
    std::printf("--- the clients' last words ---\n%s\n", crowd_.ErrorsTail().c_str());
  }
  return crowd_.tally().wrong.empty() && !interrupted ? 0 : 1;
}

}  // namespace

int Soak(const SoakOptions& options) {
  // Files of this process, the policy above all, must not be writable by others.
  umask(022);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    signal(number, [](int) { interrupted = 1; });
  }
  if (geteuid() != 0) {
    std::printf("without root: all clients are one user's, and one tenant's\n");
  }
  const auto directory = std::make_shared<test::TempDir>();
  const std::string policy = directory->path() + "/policy.textproto";
  std::ofstream(policy) << kPolicy;
  // Crashers connect as fast as the machine lets them. The limits of rates are tests of the front door.
  auto daemon = test::DaemonProcess::Start(
      {.flags = {"--provider=soft", "--policy_file=" + policy, "--audit_log=" + directory->path() + "/audit.log",
                 "--log_level=warning", "--system_call_filter=enforce", "--ticket_lifetime_ms=5000",
                 "--silent_connection_timeout_ms=3000", "--connections_per_second=0"},
       .directory = directory});
  if (!daemon.ok()) {
    std::fprintf(stderr, "rnicd_soak: %s\n", daemon.status().ToString().c_str());
    return 1;
  }
  return Run(options, *std::move(daemon)).All();
}

}  // namespace rnicd::soak
