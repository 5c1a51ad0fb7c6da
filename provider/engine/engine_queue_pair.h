#pragma once

#include <memory>
#include <string>
#include <utility>

#include "provider/engine/queue_pair_engine.h"

namespace rnicd::provider {

// The owner's handle of an engine.
class EngineQueuePair final : public DeviceQueuePair {
 public:
  explicit EngineQueuePair(std::shared_ptr<QueuePairEngine> engine) : engine_(std::move(engine)) {}
  ~EngineQueuePair() override { engine_->Shutdown(); }
  EngineQueuePair(const EngineQueuePair&) = delete;
  EngineQueuePair& operator=(const EngineQueuePair&) = delete;

  const std::shared_ptr<QueuePairEngine>& engine() const { return engine_; }
  // For a provider that has found the engine by its address.
  static EngineCard& CardOf(const QueuePairEngine& engine) { return *engine.card_; }
  EngineCard& card() const { return *engine_->card_; }

  QueuePairState state() const override { return engine_->state(); }
  std::string address() const override { return engine_->address(); }
  absl::Status Connect(std::string_view peer_address) override { return engine_->Connect(peer_address); }
  absl::StatusOr<RemoteToken> Enqueue(WorkRequest&& request) override { return engine_->Enqueue(std::move(request)); }
  void EnqueueRefused(const Completion& refusal) override { engine_->EnqueueRefused(refusal); }
  void Kick() override { engine_->Run(); }
  void Flush() override {
    engine_->Fail();
    engine_->Run();
  }
  void Disconnect() override { engine_->Disconnect(); }
  void Shutdown() override { engine_->Shutdown(); }

 private:
  const std::shared_ptr<QueuePairEngine> engine_;
};

}  // namespace rnicd::provider
