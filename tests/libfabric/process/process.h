#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>

namespace rnicd::fi {

// Set in a child made by fork.
extern bool is_a_child;

// Says what is wrong and aborts.
void Expect(bool right, const char* what, size_t detail = 0);

// An opened domain.
struct Opened {
  Opened();
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened();

  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
};

// Each makes so many registrations, or connections, and returns when all contents were right.
void StressMemory(uint64_t seed, int registrations);
void StressThreads(int connections);

// Registers blocks of the heap of all sizes, and resizes and frees registered ones.
void UseBlocksOfTheHeap();

// How far a peer gets: connected, but silent; it has asked to connect; it is connected.
enum class PeerStage { kSilent, kAsking, kConnected };
// Connects to a port of this host's, says "there" on stdout when it has got so far, and does not return.
void BePeer(PeerStage stage, uint16_t port);

}  // namespace rnicd::fi
