#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "provider/engine/queue_pair_engine.h"
#include "provider/soft/net/soft_network.h"

namespace rnicd::provider {

class SoftFabric;
class SoftRemote;

// What travels between the queue pairs and connectors of a fabric and those of other daemons. What arrives is executed
// by the fabric's worker, in order. So many requests of a link await their answers at a time; other queue pairs wait.
// Threads: safe, but Start and Stop.
class SoftTraffic final : public SoftNetwork::Receiver {
 public:
  // The fabric owns this. `network`: null where there are no other daemons.
  SoftTraffic(SoftFabric& fabric, std::shared_ptr<SoftNetwork> network)
      : fabric_(fabric), network_(std::move(network)) {}

  void Start() {
    if (network_ != nullptr) {
      network_->Start(*this);
    }
  }
  void Stop() {
    if (network_ != nullptr) {
      network_->Stop();
    }
  }
  SoftNetwork* network() const { return network_.get(); }

  // kFull: `sender` is run when there is room; only for the first piece of a request.
  enum class Sent : uint8_t { kYes, kFull, kLost };
  Sent SendRequest(uint64_t link, const SoftRequest& request, QueuePairEngine& sender);
  void SendReply(uint64_t link, const SoftReply& reply) const { network_->Send(link, reply); }

  void OnFrame(uint64_t link, SoftFrame frame) override;
  void OnLost(uint64_t link) override;

 private:
  using Waiting = std::map<const QueuePairEngine*, std::weak_ptr<QueuePairEngine>>;
  struct Room {
    uint32_t used = 0;
    Waiting waiting;
  };

  // On the worker.
  void Take(uint64_t link, const SoftFrame& frame);
  void TakeRequest(uint64_t link, const SoftRequest& request);
  void TakeReply(uint64_t link, const SoftReply& reply);
  void Lose(uint64_t link);
  static void RunAll(const Waiting& waiting);

  SoftFabric& fabric_;
  const std::shared_ptr<SoftNetwork> network_;
  Mutex mutex_;
  // Under the number of the link.
  std::map<uint64_t, Room> rooms_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
