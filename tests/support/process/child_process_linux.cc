#include "tests/support/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/errno_status.h"
#include "tests/support/process/emulator.h"

namespace rnicd::test {
namespace {

constexpr uid_t kNobody = 65534;
constexpr uid_t kSomebodyElse = 65532;

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return ErrnoStatus("pipe2", errno);
  }
  return Pipe{.read_end = UniqueFd(ends[0]), .write_end = UniqueFd(ends[1])};
}

// posix_spawn sets neither user nor limits; these two programs of util-linux do, and then exec the command.
std::vector<std::string> FullCommand(const ChildOptions& options) {
  std::vector<std::string> command;
  if (options.descriptors_max > 0) {
    command = {"prlimit", "--nofile=" + std::to_string(options.descriptors_max)};
  }
  command.insert(command.end(), {"setpriv", "--pdeathsig=KILL"});
  if (options.uid.has_value() && *options.uid != geteuid()) {
    const std::string id = std::to_string(*options.uid);
    command.insert(command.end(), {"--reuid=" + id, "--regid=" + id, "--clear-groups", "--no-new-privs",
                                   "--bounding-set=-all", "--inh-caps=-all"});
  }
  command.insert(command.end(), options.wrapper.begin(), options.wrapper.end());
  const std::vector<std::string> program = WithEmulator(options.command);
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

// The arguments of posix_spawn that have to be destroyed.
class SpawnSetup {
 public:
  SpawnSetup(int input, int output, int errors) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
    // A socket inherited by the child would keep a connection alive after the test has closed it.
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes_);
    // A suite that runs in the background of a shell ignores SIGINT.
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGINT);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  int Spawn(std::vector<std::string> command, pid_t& pid) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (std::string& argument : command) {
      arguments.push_back(argument.data());
    }
    arguments.push_back(nullptr);
    return posix_spawnp(&pid, arguments[0], &actions_, &attributes_, arguments.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

bool TwoUids() { return geteuid() == 0; }
uid_t WorkloadUid() { return TwoUids() ? kNobody : geteuid(); }
uid_t OtherUid() { return TwoUids() ? kSomebodyElse : geteuid(); }

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const ChildOptions& options) {
  // Writing to a child that has died must fail, not end the test program.
  static const auto previous = std::signal(SIGPIPE, SIG_IGN);
  (void)previous;
  auto input = MakePipe();
  auto output = MakePipe();
  auto errors = MakePipe();
  if (!input.ok() || !output.ok() || !errors.ok()) {
    return absl::ResourceExhaustedError("no pipes for a child process");
  }
  SpawnSetup setup(input->read_end.get(), output->write_end.get(),
                   options.stderr_file.value_or(errors->write_end.get()));
  std::unique_ptr<ChildProcess> child(new ChildProcess);
  if (const int error = setup.Spawn(FullCommand(options), child->pid_); error != 0) {
    return ErrnoStatus("posix_spawnp", error);
  }
  child->process_fd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, child->pid_, 0)));
  child->input_ = std::move(input->write_end);
  child->output_ = std::make_unique<PipeReader>(std::move(output->read_end));
  child->errors_ = std::make_unique<PipeReader>(std::move(errors->read_end));
  return child;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && running()) {
    Signal(SIGKILL);
    WaitForEnd();
  }
}

bool ChildProcess::WriteLine(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  return write(input_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

void ChildProcess::Signal(int signal) const { syscall(SYS_pidfd_send_signal, process_fd_.get(), signal, nullptr, 0); }

bool ChildProcess::StopAndWait() const {
  Signal(SIGSTOP);
  return Eventually([this] {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  });
}

std::optional<ProcessEnd> ChildProcess::WaitForEnd(std::chrono::milliseconds limit) {
  if (end_.has_value()) {
    return end_;
  }
  pollfd watched = {.fd = process_fd_.get(), .events = POLLIN, .revents = 0};
  siginfo_t info = {};
  if (poll(&watched, 1, static_cast<int>(limit.count())) != 1 ||
      waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0) {
    return std::nullopt;
  }
  end_ = info.si_code == CLD_EXITED ? ProcessEnd{.exit_code = info.si_status, .signal = 0}
                                    : ProcessEnd{.exit_code = -1, .signal = info.si_status};
  return end_;
}

}  // namespace rnicd::test
