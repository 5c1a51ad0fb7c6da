#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "provider/verbs/fake/verbs_fake.h"

namespace rnicd::provider {

// Carries what is posted to the fake card's queue pairs from one to the other, as a card and its wire would: a send
// ends the oldest receive of the peer, a write or read needs a remote token that allows it, and a peer that is not
// connected back does not answer. It moves no bytes, because the fake card has none.
// Lifetime: outlived by the card.
// Threads:  works on a thread of its own; safe.
class FakeWire {
 public:
  explicit FakeWire(FakeVerbs& card);
  ~FakeWire();
  FakeWire(const FakeWire&) = delete;
  FakeWire& operator=(const FakeWire&) = delete;

 private:
  void Run();
  // Carries out the oldest request of the queue pair; false if there is none, or if it has to wait.
  bool Carry(uint32_t number);
  bool CarrySend(const PostedSend& send, uint32_t peer);
  // Whether a registration of the card has this key, covers the range and grants the right.
  bool Allows(const PostedSend& request) const;

  FakeVerbs& card_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace rnicd::provider
