#include <windows.h>

#include <utility>

#include "base/windows_status.h"
#include "tests/support/process/child_process.h"

namespace rnicd::test {
namespace {

// One end is inherited by the child, and the other is not.
struct Pipe {
  UniqueFd ours;
  UniqueFd childs;
};

absl::StatusOr<Pipe> MakePipe(bool child_writes) {
  SECURITY_ATTRIBUTES inherited = {
      .nLength = sizeof(inherited), .lpSecurityDescriptor = nullptr, .bInheritHandle = TRUE};
  HANDLE reading = nullptr;
  HANDLE writing = nullptr;
  if (CreatePipe(&reading, &writing, &inherited, 0) == 0) {
    return absl::ResourceExhaustedError(WindowsDetail("CreatePipe", GetLastError()));
  }
  SetHandleInformation(child_writes ? reading : writing, HANDLE_FLAG_INHERIT, 0);
  return Pipe{.ours = UniqueFd(HandleToLong(child_writes ? reading : writing)),
              .childs = UniqueFd(HandleToLong(child_writes ? writing : reading))};
}

// No argument of these tests has a quotation mark.
std::string CommandLine(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) {
    line += (line.empty() ? "\"" : " \"") + word + "\"";
  }
  return line;
}

}  // namespace

// Tests know users by a number, which Windows does not have.
bool TwoUids() { return false; }
uint32_t WorkloadUid() { return 0; }
uint32_t OtherUid() { return 0; }

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const ChildOptions& options) {
  auto input = MakePipe(/*child_writes=*/false);
  auto output = MakePipe(/*child_writes=*/true);
  auto errors = MakePipe(/*child_writes=*/true);
  if (!input.ok() || !output.ok() || !errors.ok()) {
    return absl::ResourceExhaustedError("no pipes for a child process");
  }
  STARTUPINFOA start = {};
  start.cb = sizeof(start);
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdInput = LongToHandle(input->childs.get());
  start.hStdOutput = LongToHandle(output->childs.get());
  start.hStdError = LongToHandle(errors->childs.get());
  PROCESS_INFORMATION facts = {};
  std::string line = CommandLine(options.command);
  if (CreateProcessA(nullptr, line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &start, &facts) == 0) {
    return absl::UnavailableError(line + ": " + WindowsDetail("CreateProcess", GetLastError()));
  }
  CloseHandle(facts.hThread);
  std::unique_ptr<ChildProcess> child(new ChildProcess);
  child->pid_ = static_cast<pid_t>(facts.dwProcessId);
  child->process_fd_ = UniqueFd(HandleToLong(facts.hProcess));
  child->input_ = std::move(input->ours);
  child->output_ = std::make_unique<PipeReader>(std::move(output->ours));
  child->errors_ = std::make_unique<PipeReader>(std::move(errors->ours));
  return child;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && running()) {
    Signal(SIGTERM);
    WaitForEnd();
  }
}

bool ChildProcess::WriteLine(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  DWORD count = 0;
  return WriteFile(LongToHandle(input_.get()), text.data(), static_cast<DWORD>(text.size()), &count, nullptr) != 0;
}

// Whatever the signal: Windows has none.
void ChildProcess::Signal(int /*signal*/) const { TerminateProcess(LongToHandle(process_fd_.get()), 0); }

bool ChildProcess::StopAndWait() const { return false; }

std::optional<ProcessEnd> ChildProcess::WaitForEnd(std::chrono::milliseconds limit) {
  if (end_.has_value()) {
    return end_;
  }
  const HANDLE process = LongToHandle(process_fd_.get());
  DWORD code = 0;
  if (WaitForSingleObject(process, static_cast<DWORD>(limit.count())) != WAIT_OBJECT_0 ||
      GetExitCodeProcess(process, &code) == 0) {
    return std::nullopt;
  }
  end_ = ProcessEnd{.exit_code = static_cast<int>(code), .signal = 0};
  return end_;
}

}  // namespace rnicd::test
