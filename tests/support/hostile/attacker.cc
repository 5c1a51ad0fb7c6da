#include "tests/support/hostile/attacker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/files/unique_fd.h"
#include "tests/support/process/temp_dir.h"

namespace rnicd::test {
namespace {

// A packet carries up to 253 descriptors, and a lingering socket needs two of its process.
constexpr uint64_t kDescriptorsMax = 8192;

std::unique_ptr<ChildClient> StartProgram(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {ExecutableForEveryone(RNICD_TEST_ATTACKER_PATH)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return ChildClient::StartProgram({.command = command, .uid = std::nullopt, .descriptors_max = kDescriptorsMax});
}

// Files that a process which is not theirs could not open: the mount is in no directory.
std::string MountCommand(ChildClient& server) {
  const ChildAnswer ready = server.Answer();
  EXPECT_TRUE(ready.ok) << "no file system: " << ready.reason;
  return "mount " + std::to_string(server.process().pid()) + " " + std::to_string(ready.number("mount"));
}

}  // namespace

std::string NameOf(BaitKind kind) {
  switch (kind) {
    case BaitKind::kLingeringSocket:
      return "LingeringSocket";
    case BaitKind::kStuckFile:
      return "StuckFile";
    case BaitKind::kSocketWithStuckFile:
      return "SocketWithStuckFile";
    case BaitKind::kMuteFile:
      return "MuteFile";
  }
  return "";
}

void PrintTo(BaitKind kind, std::ostream* out) { *out << NameOf(kind); }

std::vector<BaitKind> PossibleHere(const std::vector<BaitKind>& kinds) {
  const UniqueFd fuse(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (TwoUids() && fuse.valid()) {
    return kinds;
  }
  std::fprintf(stderr, "no tests with files whose close blocks: %s\n",
               TwoUids() ? std::strerror(errno) : "they need root");
  std::vector<BaitKind> possible = kinds;
  std::erase_if(possible, [](BaitKind kind) { return kind != BaitKind::kLingeringSocket; });
  return possible;
}

bool CanWithholdPages() {
  const UniqueFd faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC)));
  if (TwoUids() && faults.valid()) {
    return true;
  }
  std::fprintf(stderr, "no tests with writes that never end: %s\n",
               TwoUids() ? std::strerror(errno) : "they need root");
  return false;
}

std::string WordsOf(const DaemonProcess& daemon, DaemonSocket socket) {
  switch (socket) {
    case DaemonSocket::kRpc:
      return "stream " + daemon.rpc_socket();
    case DaemonSocket::kFd:
      return "packet " + daemon.fd_socket();
    case DaemonSocket::kAdmin:
      return "stream " + daemon.admin_socket();
  }
  return "";
}

bool LetEveryoneReachAdmin(const DaemonProcess& daemon) {
  return chmod(daemon.admin_dir().c_str(), 0755) == 0 && chmod(daemon.admin_socket().c_str(), 0666) == 0;
}

std::unique_ptr<ChildClient> StartAttacker(const DaemonProcess& daemon) { return StartProgram({daemon.socket_dir()}); }

std::unique_ptr<BaitedAttacker> BaitedAttacker::Start(const DaemonProcess& daemon, uid_t uid, BaitKind kind,
                                                      int baits) {
  std::unique_ptr<BaitedAttacker> attacker(new BaitedAttacker);
  attacker->client_ = StartAttacker(daemon);
  if (attacker->client_ == nullptr || !attacker->MakeBaits(uid, kind, baits)) {
    return nullptr;
  }
  return attacker;
}

bool BaitedAttacker::MakeBaits(uid_t uid, BaitKind kind, int baits) {
  const std::string become = "become " + std::to_string(uid);
  if (kind == BaitKind::kLingeringSocket) {
    return client_->MustRun(become).ok && client_->MustRun("sockets " + std::to_string(baits)).ok;
  }
  server_ = StartProgram({kind == BaitKind::kMuteFile ? "--mute-files" : "--stuck-files", std::to_string(uid)});
  const std::string make = kind == BaitKind::kSocketWithStuckFile ? "nested " : "files ";
  return server_ != nullptr && client_->MustRun(MountCommand(*server_)).ok && client_->MustRun(become).ok &&
         client_->MustRun(make + std::to_string(baits)).ok && server_->MustRun("stick").ok;
}

void BaitedAttacker::StopServing() {
  if (server_ != nullptr) {
    server_->KillHard();
  }
}

void BaitedAttacker::Release() {
  // A process that waits for the server of its files cannot be killed.
  StopServing();
  if (client_ != nullptr) {
    client_->KillHard();
  }
}

}  // namespace rnicd::test
