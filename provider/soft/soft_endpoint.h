#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "provider/engine/queue_pair_engine.h"
#include "provider/soft/memory/soft_target.h"
#include "provider/soft/soft_nic.h"
#include "provider/soft/soft_remote.h"

namespace rnicd::provider {

// A queue pair of a soft card: executes each request at once, on the engine's runner. A runner that has moved many
// bytes hands the rest to the card's thread. A delayed read begins a second time when its bytes land.
// Lifetime: owned by its engine.
// Threads: as EngineCard.
class SoftEndpoint : public EngineCard {
 public:
  // `listener` outlives Shutdown.
  static std::shared_ptr<QueuePairEngine> Create(std::shared_ptr<SoftNic> nic, uint64_t domain,
                                                 const QueuePairLimits& limits, QueuePairListener& listener);

  SoftNic& nic() const { return *nic_; }
  SoftAccessor accessor() const { return {.domain = domain_, .queue_pair = number_}; }
  SoftRemote& remote() { return remote_; }
  using EngineCard::engine;

  absl::Status Prepare(EngineRequest& /*request*/) override { return absl::OkStatus(); }
  RemoteToken Issue(EngineRequest& request) override;
  absl::StatusOr<EnginePeer> Connect(std::string_view peer_address) override;
  BeginResult Begin(EngineRequest& request, EngineTurn& turn) override;
  void RunLater(std::function<void()> job) override { nic_->fabric().worker().Post(std::move(job)); }
  // What is started are reads, whose bytes are dropped, and a request to another daemon.
  void Fail() override {
    remote_.Fail();
    engine().Abandon();
  }
  absl::Status PostReceive(EngineRequest& /*receive*/) override {
    remote_.OnReceivePosted();
    return absl::OkStatus();
  }

 protected:
  SoftEndpoint(std::shared_ptr<SoftNic> nic, uint64_t domain, uint64_t number)
      : nic_(std::move(nic)), domain_(domain), number_(number) {}
  // Makes the engine of a card with that number, and its address known.
  static std::shared_ptr<QueuePairEngine> Publish(std::unique_ptr<SoftEndpoint> card, const QueuePairLimits& limits,
                                                  QueuePairListener& listener);

 private:
  const std::shared_ptr<SoftNic> nic_;
  const uint64_t domain_;
  const uint64_t number_;
  SoftRemote remote_{*this};
};

}  // namespace rnicd::provider
