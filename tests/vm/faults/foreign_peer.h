#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tests/support/calls/expect.h"
#include "tests/support/process/child_process.h"

namespace rnicd::test {

struct PeerAnswer {
  bool ok = false;
  // The word after "error": the name of a completion's status, or USAGE; NO_ANSWER without a response.
  std::string error;
  std::map<std::string, std::string> values;

  // A value in decimal, or in hexadecimal with the prefix 0x.
  uint64_t number(const std::string& key) const;
};

// Memory of another process that is reachable by RDMA.
struct RemoteBytes {
  uint64_t address = 0;
  uint32_t token = 0;

  RemoteBytes operator+(uint64_t offset) const { return {.address = address + offset, .token = token}; }
};

struct PeerOptions {
  std::string device = "rxb";
  // The GID of its queue pair; must be of the address family that the daemon's adapter uses.
  std::string gid = "ipv4";
};

// The program rnicd_foreign_peer: a queue pair on the far card without rnicd. An unexpected failure of a step is a test
// failure.
// Lifetime: the destructor kills the process.
class ForeignPeer {
 public:
  explicit ForeignPeer(const PeerOptions& options = {});

  // Address of its queue pair.
  const std::string& address() const { return address_; }
  bool Connect(const std::string& daemons_address, Where where = Where::current());

  // Sends one command and returns its response.
  PeerAnswer Run(const std::string& command);
  void Send(const std::string& command) { process_->WriteLine(command); }
  PeerAnswer Answer();

  // Writes Pattern(seed, length), or reads, and returns the result.
  PeerAnswer Write(const RemoteBytes& target, uint32_t seed, size_t length);
  PeerAnswer Read(const RemoteBytes& source, size_t length);
  // Same as Write; must succeed.
  void MustWrite(const RemoteBytes& target, uint32_t seed, size_t length, Where where = Where::current());
  // Reads; the bytes must equal `expected`.
  void MustRead(const RemoteBytes& source, const std::string& expected, Where where = Where::current());
  // Starts writing `length` bytes in a loop, with a counter in the first 8. The response comes when a write fails.
  void BeginTraffic(const RemoteBytes& target, size_t length);

  // The peer's memory, 64 KiB, as a target for the daemon's side.
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
