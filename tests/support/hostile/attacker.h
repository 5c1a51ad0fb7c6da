#pragma once

#include <sys/types.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/process/child_client.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::test {

// Descriptors whose close() blocks until the attacker releases it (test_attacker/baits.h).
// The mute file has more: fstat() of it blocks as well.
enum class BaitKind { kLingeringSocket, kStuckFile, kSocketWithStuckFile, kMuteFile };

// The name of a row of a test.
std::string NameOf(BaitKind kind);
void PrintTo(BaitKind kind, std::ostream* out);

// Those of `kinds` that this machine can make. Files need root and FUSE; without them a line on stderr says what is
// left out.
std::vector<BaitKind> PossibleHere(const std::vector<BaitKind>& kinds);

// Whether this machine can withhold a page from a system call (WithheldPage); without, a line on stderr says so.
bool CanWithholdPages();

enum class DaemonSocket { kRpc, kFd, kAdmin };

// The socket as words of an attacker's command: its type and its path.
std::string WordsOf(const DaemonProcess& daemon, DaemonSocket socket);

// Lets every user connect to the operators' socket: the kernel refuses attackers before the daemon has to. False if the
// modes cannot be changed.
bool LetEveryoneReachAdmin(const DaemonProcess& daemon);

// The program test_attacker, whose main.cc lists the commands. Null, after a test failure, if it cannot be started.
std::unique_ptr<ChildClient> StartAttacker(const DaemonProcess& daemon);

// An attacker that runs as `uid` and has baits.
// Lifetime: the destructor releases everybody who waits in a close. Destroy it before a daemon that may wait so.
class BaitedAttacker {
 public:
  // Null, after a test failure, if there is none.
  static std::unique_ptr<BaitedAttacker> Start(const DaemonProcess& daemon, uid_t uid, BaitKind kind, int baits);
  ~BaitedAttacker() { Release(); }
  BaitedAttacker(const BaitedAttacker&) = delete;
  BaitedAttacker& operator=(const BaitedAttacker&) = delete;

  ChildClient& client() { return *client_; }
  // Ends the server of stuck files, if there is one: no close of them waits any more.
  void StopServing();
  // Ends the attack and the attacker: no close of a bait waits any more.
  void Release();

 private:
  BaitedAttacker() = default;
  bool MakeBaits(uid_t uid, BaitKind kind, int baits);

  std::unique_ptr<ChildClient> client_;
  // Serves the stuck files; null for other baits.
  std::unique_ptr<ChildClient> server_;
};

}  // namespace rnicd::test
