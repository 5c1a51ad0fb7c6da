#include <winsock2.h>

#include <array>
#include <cstdlib>
#include <string>

#include "base/system/winsock.h"
#include "daemon/pipes/front_door_fixture.h"
#include "daemon/pipes/security.h"

namespace rnicd::pipes {
namespace {

constexpr char kPipeVariable[] = "RNICD_TEST_PIPE";
constexpr char kPortVariable[] = "RNICD_TEST_PORT";

// A client in a process of its own: says hello, connects, and waits to be killed. Uses nothing that main begins.
void RunClient(const char* pipe, const char* port) {
  HANDLE handle = CreateFileA(pipe, kClientRights, 0, nullptr, OPEN_EXISTING,
                              SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION, nullptr);
  const std::array<char, 2> hello = {'\x0a', '\0'};
  std::array<char, 4096> reply;
  DWORD bytes = 0;
  if (WriteFile(handle, hello.data(), hello.size(), &bytes, nullptr) == 0 ||
      ReadFile(handle, reply.data(), reply.size(), &bytes, nullptr) == 0 || !StartWinsock()) {
    ExitProcess(1);
  }
  const UniqueSocket connection = ConnectTo(static_cast<uint32_t>(std::atoi(port)));
  Sleep(20'000);
  ExitProcess(2);
}

// The program of the tests is the client when these variables are set.
const bool kIsClient = [] {
  const char* const pipe = std::getenv(kPipeVariable);
  const char* const port = std::getenv(kPortVariable);
  if (pipe != nullptr && port != nullptr) {
    RunClient(pipe, port);
  }
  return false;
}();

class ClientProcess {
 public:
  ClientProcess(const std::string& pipe, uint32_t port) {
    SetEnvironmentVariableA(kPipeVariable, pipe.c_str());
    SetEnvironmentVariableA(kPortVariable, std::to_string(port).c_str());
    std::array<char, MAX_PATH> program;
    GetModuleFileNameA(nullptr, program.data(), program.size());
    STARTUPINFOA start = {};
    start.cb = sizeof(start);
    EXPECT_NE(CreateProcessA(program.data(), nullptr, nullptr, nullptr, FALSE, 0, nullptr, nullptr, &start, &facts_),
              0);
    SetEnvironmentVariableA(kPipeVariable, nullptr);
    SetEnvironmentVariableA(kPortVariable, nullptr);
  }
  ~ClientProcess() {
    Kill();
    CloseHandle(facts_.hThread);
    CloseHandle(facts_.hProcess);
  }
  void Kill() { TerminateProcess(facts_.hProcess, 3); }
  uint64_t pid() const { return facts_.dwProcessId; }

 private:
  PROCESS_INFORMATION facts_ = {};
};

TEST_F(FrontDoorTest, TheEndOfAProcessEndsItsSessionsAndConnectionsAndNoOthers) {
  ASSERT_FALSE(kIsClient);
  Open();
  const PipeClient ours = Connect();
  const uint32_t port = ours.Hello().port();
  ClientProcess theirs(names_.workloads, port);
  const core::Caller caller = CallerOf(1);
  EXPECT_EQ(caller.process.low, theirs.pid());
  const UniqueSocket connection = ConnectTo(port);
  const core::Caller our_caller = CallerOf(2);
  EXPECT_NE(our_caller.process, caller.process);
  EXPECT_EQ(our_caller.sid, caller.sid);
  EXPECT_FALSE(server_.admitted()[0].secret->Matches(ours.Hello().secret())) << "each process has a secret of its own";
  const auto session = world_.registry.Open(caller, "theirs");
  const auto our_session = world_.registry.Open(our_caller, "ours");
  ASSERT_TRUE(session.ok() && our_session.ok());
  theirs.Kill();
  EXPECT_TRUE(Eventually([&] { return world_.observer.counts().ended == 1; }));
  EXPECT_EQ(world_.observer.counts().cause, core::EndCause::kProcessExited);
  EXPECT_TRUE(Eventually([&] { return door_->connections() == 1; }));
  EXPECT_TRUE((*our_session)->Begin().ok());
  EXPECT_TRUE(caller.handle->HasExited(std::chrono::milliseconds(0)));
}

}  // namespace
}  // namespace rnicd::pipes
