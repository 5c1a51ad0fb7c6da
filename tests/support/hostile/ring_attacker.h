#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/calls/raw_client.h"
#include "tests/support/hostile/raw_ring.h"

namespace rnicd::test {

// A hostile client with a session, a ring, and some objects of its own that its entries can name.
// Threads: none, but for the one that disturbs.
class RingAttacker {
 public:
  RingAttacker(const std::string& socket_dir, uint64_t seed);
  ~RingAttacker();
  RingAttacker(const RingAttacker&) = delete;
  RingAttacker& operator=(const RingAttacker&) = delete;

  bool ready() const { return ring_ != nullptr; }
  RawClient& client() { return client_; }
  std::string fd_socket() const { return socket_dir_ + "/fd.sock"; }
  // The last ring that was opened.
  RawRing& ring() { return *ring_; }
  // Closes the ring and opens another, unless the daemon refuses that; the old one is then kept.
  void Reopen();
  bool HasEnded();

  uint64_t Below(uint64_t below) { return dice_() % below; }
  uint32_t Any() { return static_cast<uint32_t>(dice_()); }
  // A number near the limits that the daemon checks.
  uint32_t Edge();
  // An entry that names the attacker's own objects, as often as any others.
  ring::Submission SomeEntry();
  void FillPayload();

  // Submits as an honest client, without regard to what is read.
  void Submit(const ring::Submission& entry);
  // Up to so many entries that do nothing, and reads their outcomes.
  void SubmitNops(uint32_t count);
  // Says that all outcomes were read. The count is the daemon's word for it.
  void ReadOutcomes();

  // Calls this again and again in a thread of its own, from the first call on until the end or Reopen.
  void DisturbWith(void (*disturb)(RawRing& ring, uint32_t random));

  uint64_t adapter_id() const { return adapter_id_; }
  uint64_t pd_id() const { return pd_id_; }

 private:
  void MakeObjects();
  void StopDisturbing();

  const std::string socket_dir_;
  std::mt19937_64 dice_;
  RawClient client_;
  std::unique_ptr<RawRing> ring_;
  // The client's own indices: what is in the memory may have been scribbled over.
  uint32_t tail_ = 0;
  uint64_t adapter_id_ = 0;
  uint64_t pd_id_ = 0;
  std::vector<uint64_t> objects_;
  std::atomic<bool> calm_{false};
  std::thread disturber_;
};

}  // namespace rnicd::test
