#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "provider/api/device.h"

namespace rnicd::simulation {

// A bug planted to prove that an invariant finds it.
enum class Canary : uint8_t {
  kNone,
  // One completion comes twice, or not at all.
  kCompletionTwice,
  kCompletionLost,
  // A region reports that it is deregistered and is not.
  kTokenOutlivesRegion,
  // A byte of registered memory changes without a transfer.
  kStrayByte,
  // The pages of one fast registration are never released.
  kPagesKept,
  // A memory file is not recognised, so that its pages are charged twice.
  kPageChargedTwice,
  // A page is refunded when the first of its registrations ends.
  kPageGivenBackEarly,
  // The outcome of an entry of a ring is written twice.
  kOutcomeTwice,
  // Two completions of a mapped queue are exchanged.
  kMappedSwapped,
  // A request that was refused completes at once, and its queue pair goes on.
  kRefusalAtOnce,
};

// Records what passes between core and the card: every live device object and every completion, in order, without
// expectations.
// Threads: none; a simulation has one thread.
class Witness {
 public:
  explicit Witness(Canary canary) : canary_(canary) {}

  struct Reported {
    // Number of the queue pair.
    uint64_t pair = 0;
    provider::WorkQueue queue = provider::WorkQueue::kInitiator;
    provider::Completion completion;
  };
  struct Keys {
    LocalToken local;
    RemoteToken remote;
  };
  // Live device objects.
  struct Living {
    uint64_t adapters = 0;
    uint64_t domains = 0;
    uint64_t completion_queues = 0;
    uint64_t queue_pairs = 0;
  };

  // Completions and lost peers since the last Forget.
  std::vector<Reported> completions;
  std::vector<uint64_t> peers_gone;
  // Keys of the created regions and windows, in order.
  std::vector<Keys> keys;
  // Reports that queue pairs made after their Shutdown had returned.
  std::vector<std::string> late;
  void Forget();

  Living living;
  // Tokens that queue pairs issued since the last Forget, in order.
  std::vector<RemoteToken> issued;
  // Number of queue pairs created so far, which is also the number of the last one.
  uint64_t pairs_made = 0;

  // True once, at one of the early occasions: the caller then plants its bug.
  bool Plants(Canary canary);
  // Objects kept alive until the end.
  std::vector<std::shared_ptr<const void>> kept;

 private:
  const Canary canary_;
  uint64_t occasions_ = 0;
};

// A provider that forwards to another one and records its calls.
class WitnessProvider final : public provider::Provider {
 public:
  // Both must outlive this provider.
  WitnessProvider(provider::Provider& inner, Witness& witness) : inner_(inner), witness_(witness) {}

  std::string_view name() const override { return inner_.name(); }
  std::vector<provider::AdapterDescription> ListAdapters() const override { return inner_.ListAdapters(); }
  absl::StatusOr<std::unique_ptr<provider::DeviceAdapter>> OpenAdapter(std::string_view adapter_name) override;
  uint64_t live_regions() const override { return inner_.live_regions(); }
  provider::FastRegistrationCounts fast_registrations() const override { return inner_.fast_registrations(); }

 private:
  provider::Provider& inner_;
  Witness& witness_;
};

}  // namespace rnicd::simulation
