#include "tests/windows_daemon/daemon_program.h"

#include <winsock2.h>

#include <array>
#include <cstdlib>

#include "base/system/winsock.h"

namespace rnicd::test {
namespace {

// Only a failing test waits this long.
constexpr DWORD kProgramMilliseconds = 120'000;

HANDLE HandleOf(const UniqueFd& fd) { return LongToHandle(fd.get()); }

UniqueSocket ConnectToLoopback(uint32_t port) {
  StartWinsock();
  const SOCKET raw = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
  UniqueSocket connected(static_cast<int>(raw));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<u_short>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(raw, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return connected;
}

// The value behind "key=" in the text.
std::string ValueOf(const std::string& text, const std::string& key) {
  const size_t begin = text.find(" " + key + "=");
  if (begin == std::string::npos) {
    return "";
  }
  const size_t value = begin + key.size() + 2;
  return text.substr(value, text.find_first_of(" \r\n", value) - value);
}

}  // namespace

Program::Program(std::string command) {
  SECURITY_ATTRIBUTES inherited = {.nLength = sizeof(inherited), .bInheritHandle = TRUE};
  HANDLE reading = nullptr;
  HANDLE writing = nullptr;
  EXPECT_NE(CreatePipe(&reading, &writing, &inherited, 0), 0);
  SetHandleInformation(reading, HANDLE_FLAG_INHERIT, 0);
  STARTUPINFOA start = {};
  start.cb = sizeof(start);
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdError = writing;
  start.hStdOutput = writing;
  PROCESS_INFORMATION facts = {};
  EXPECT_NE(CreateProcessA(nullptr, command.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &start, &facts), 0)
      << command << ": error " << GetLastError();
  CloseHandle(writing);
  CloseHandle(facts.hThread);
  process_.Reset(HandleToLong(facts.hProcess));
  pipe_.Reset(HandleToLong(reading));
  reader_ = std::thread([this] { ReadOutput(); });
}

Program::~Program() {
  Kill();
  if (reader_.joinable()) {
    reader_.join();
  }
}

void Program::ReadOutput() {
  std::array<char, 4096> bytes;
  DWORD count = 0;
  while (ReadFile(HandleOf(pipe_), bytes.data(), bytes.size(), &count, nullptr) != 0 && count > 0) {
    MutexLock lock(mutex_);
    output_.append(bytes.data(), count);
  }
}

std::string Program::output() const {
  MutexLock lock(mutex_);
  return output_;
}

bool Program::HasEnded() const { return WaitForSingleObject(HandleOf(process_), 0) == WAIT_OBJECT_0; }

uint32_t Program::Wait() {
  DWORD status = STILL_ACTIVE;
  EXPECT_EQ(WaitForSingleObject(HandleOf(process_), kProgramMilliseconds), WAIT_OBJECT_0) << output();
  GetExitCodeProcess(HandleOf(process_), &status);
  if (status == STILL_ACTIVE) {
    Kill();
  }
  reader_.join();
  return status;
}

void Program::Kill() {
  TerminateProcess(HandleOf(process_), 9);
  WaitForSingleObject(HandleOf(process_), INFINITE);
}

DaemonProgram::DaemonProgram(const std::vector<std::string>& flags) {
  static int last = 0;
  const std::string name = "rnicd-daemon-" + std::to_string(GetCurrentProcessId()) + "-" + std::to_string(++last);
  pipe_ = R"(\\.\pipe\)" + name;
  std::string command = RNICD_PROGRAM " --pipe=" + name + " --metrics_address=127.0.0.1:0 --event_log=false";
  for (const std::string& flag : flags) {
    command += " " + flag;
  }
  program_ = std::make_unique<Program>(command);
  Eventually([this] { return serves() || program_->HasEnded(); });
}

std::string DaemonProgram::Page(const std::string& path) const {
  const std::string log_now = log();
  const std::string address = ValueOf(log_now.substr(log_now.find(" ready ")), "metrics_address");
  const UniqueSocket socket =
      ConnectToLoopback(static_cast<uint32_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
  const auto raw = static_cast<SOCKET>(socket.get());
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(send(raw, request.data(), static_cast<int>(request.size()), 0), static_cast<int>(request.size()));
  std::string response;
  std::array<char, 4096> bytes;
  for (int count = 0; (count = recv(raw, bytes.data(), bytes.size(), 0)) > 0;) {
    response.append(bytes.data(), static_cast<size_t>(count));
  }
  return response;
}

Client::Client(const std::string& pipe) : pipe_(pipe) {
  const v1::PipeReply hello = pipe_.Hello();
  secret_ = hello.secret();
  UniqueSocket socket = ConnectToLoopback(hello.port());
  u_long non_blocking = 1;
  ioctlsocket(static_cast<SOCKET>(socket.get()), static_cast<long>(FIONBIO), &non_blocking);
  connection_ = std::make_unique<rpc::TestClient>(std::move(socket));
}

rpc::Response Client::Raw(const std::string& method, const google::protobuf::MessageLite& request,
                          const std::string& secret) {
  return connection_->Result("/rnicd.v1." + method, request.SerializeAsString(),
                             {{"authorization", "Bearer " + secret}});
}

}  // namespace rnicd::test
