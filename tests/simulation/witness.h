#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "provider/api/device.h"

namespace rnicd::simulation {

// A bug that is planted so that an invariant must find it.
enum class Canary : uint8_t {
  kNone,
  // One completion comes twice, or not at all.
  kCompletionTwice,
  kCompletionLost,
  // A region says that it is deregistered and is not.
  kTokenOutlivesRegion,
  // A byte of registered memory changes though no transfer was asked for.
  kStrayByte,
  // The pages of one fast registration are never let go of.
  kPagesKept,
  // A memory file is not known again, so that its pages are charged once more.
  kPageChargedTwice,
  // A page is given back with the first of its registrations that ends.
  kPageGivenBackEarly,
};

// What passes between core and the card: every device object that lives, every completion, in order. It knows nothing
// of what should be. Threads: none; a simulation has one thread.
class Witness {
 public:
  explicit Witness(Canary canary) : canary_(canary) {}

  struct Reported {
    // The number of the queue pair.
    uint64_t pair = 0;
    provider::WorkQueue queue = provider::WorkQueue::kInitiator;
    provider::Completion completion;
  };
  struct Keys {
    LocalToken local;
    RemoteToken remote;
  };
  // Device objects that exist now.
  struct Living {
    uint64_t adapters = 0;
    uint64_t domains = 0;
    uint64_t completion_queues = 0;
    uint64_t queue_pairs = 0;
  };

  // Since the last Forget.
  std::vector<Reported> completions;
  std::vector<uint64_t> peers_gone;
  // Of the regions and windows made, in order.
  std::vector<Keys> keys;
  // Reports of queue pairs after their Shutdown had returned.
  std::vector<std::string> late;
  void Forget();

  Living living;
  // Queue pairs made so far; the number of the last one.
  uint64_t pairs_made = 0;

  // True once, for one of the early occasions: then the caller plants its bug.
  bool Plants(Canary canary);
  // What must never die.
  std::vector<std::shared_ptr<const void>> kept;

 private:
  const Canary canary_;
  uint64_t occasions_ = 0;
};

// A provider that is another one, watched.
class WitnessProvider final : public provider::Provider {
 public:
  // Both outlive this provider.
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
