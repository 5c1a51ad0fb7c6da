#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/fast_region.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/work_chain.h"

namespace rnicd::bench {

// Requests of one chain.
inline constexpr int kRingChain = 64;

// A client of librnicd with a queue pair that is connected to itself, a mapping, and fast regions. `round` alternates
// between a registration and its end.
class RingUser {
 public:
  RingUser(const std::string& socket_dir, DataPath path, std::chrono::microseconds spin);

  // A FastRegister, or its Invalidate, posted; its completion polled.
  void FastRegisterAndPoll(int round);
  // kRingChain of them, silent.
  void PostChain(int round);
  // 64 bytes.
  void WriteAndPoll();
  // The same without waiting for the outcome of the post, into an array.
  void WriteWithoutOutcomeAndPoll();
  // `count` of them, in chains of `chain`, with so many outstanding; with `silent`, only one in 16 chains completes.
  struct Stream {
    int count = 0;
    int chain = 1;
    int outstanding = 0;
    bool silent = false;
  };
  void WriteStream(const Stream& stream);
  // 4 KiB; through the ring alone, since librnicd makes a region for each registration.
  void RegisterAndDeregister();
  // The smallest entry of a ring: a look-up.
  void GetRemoteToken();

  // Adds fast regions, each registered, until there are `count`. They live until the session ends.
  void GrowLiveRegions(size_t count);
  // An Invalidate and a FastRegister in one chain, of a region drawn at random; the completion of the second polled.
  void RegisterAgainAndPoll();

 private:
  void Add(int round, const FastRegion& region, uint32_t flags, WorkChain* chain) const;
  void Post(const WorkChain& chain);
  // Adds a write of 64 bytes.
  void AddWrite(uint32_t flags, WorkChain* chain) const;
  void PostRequests(std::span<const WorkRequest> requests);
  WorkRequest Registration(MemoryRegionId region, uint32_t flags) const;
  void AwaitCompletion();

  Client client_;
  Memory memory_;
  LogicalMapping mapping_;
  MemoryRegion region_;
  MemoryRegion small_;
  CompletionQueue queue_;
  QueuePair pair_;
  FastRegion single_;
  std::vector<FastRegion> chain_;
  std::vector<MemoryRegionId> live_;
  WorkChain one_write_;
  std::array<Completion, 64> polled_;
  std::minstd_rand random_{1};
};

}  // namespace rnicd::bench
