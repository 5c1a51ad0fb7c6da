#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tests/support/child_process.h"
#include "tests/support/expect.h"

namespace rnicd::test {

struct PeerAnswer {
  bool ok = false;
  // After "error": the name of a completion's state, "USAGE", or NO_ANSWER.
  std::string error;
  std::map<std::string, std::string> values;

  // Decimal, or hexadecimal behind 0x.
  uint64_t number(const std::string& key) const;
};

// Memory of another process that can be reached by RDMA.
struct RemoteBytes {
  uint64_t address = 0;
  uint32_t token = 0;

  RemoteBytes operator+(uint64_t offset) const { return {.address = address + offset, .token = token}; }
};

struct PeerOptions {
  std::string device = "rxb";
  // What its queue pair is found by; must be of the family that the daemon's adapter uses.
  std::string gid = "ipv4";
};

// The program rnicd_foreign_peer: a queue pair on the far card that is no rnicd's. Steps that fail where they should
// not are test failures. Lifetime: killed when this goes.
class ForeignPeer {
 public:
  explicit ForeignPeer(const PeerOptions& options = {});

  // Of its queue pair.
  const std::string& address() const { return address_; }
  bool Connect(const std::string& daemons_address, Where where = Where::current());

  // One command, one answer.
  PeerAnswer Run(const std::string& command);
  void Send(const std::string& command) { process_->WriteLine(command); }
  PeerAnswer Answer();

  // Writes Pattern(seed, length), or reads, and says how that ended.
  PeerAnswer Write(const RemoteBytes& target, uint32_t seed, size_t length);
  PeerAnswer Read(const RemoteBytes& source, size_t length);
  // Likewise; must succeed.
  void MustWrite(const RemoteBytes& target, uint32_t seed, size_t length, Where where = Where::current());
  // What it reads must be this.
  void MustRead(const RemoteBytes& source, const std::string& expected, Where where = Where::current());
  // Begins to write `length` bytes again and again, counting up in the first 8. The answer comes when that fails.
  void BeginTraffic(const RemoteBytes& target, size_t length);

  // Its own memory, for what the daemon's side does: 64 KiB.
  RemoteBytes memory();
  void Fill(uint64_t offset, uint32_t seed, size_t length, Where where = Where::current());
  bool Holds(uint64_t offset, const std::string& expected);

  ChildProcess& process() { return *process_; }
  void KillHard();

 private:
  std::unique_ptr<ChildProcess> process_;
  std::string address_;
};

}  // namespace rnicd::test
