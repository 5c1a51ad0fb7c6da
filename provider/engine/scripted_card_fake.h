#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "provider/api/recording_listener_test.h"
#include "provider/api/requests_test.h"
#include "provider/engine/engine_queue_pair.h"
#include "provider/engine/queue_pair_engine.h"

namespace rnicd::provider {

using Contexts = std::vector<uint64_t>;

// A card whose actions the test scripts for each request. By default it starts the request and keeps it until the test
// ends it, and cancels its requests when it fails. Requests are identified by their contexts.
class ScriptedCard final : public EngineCard {
 public:
  using Answer = std::function<BeginResult(const EngineTurn& turn)>;

  explicit ScriptedCard(EngineFabric& fabric) : fabric_(fabric) {}

  absl::Status Prepare(EngineRequest& /*request*/) override { return refusal; }
  RemoteToken Issue(EngineRequest& /*request*/) override { return RemoteToken{++issued}; }
  absl::StatusOr<EnginePeer> Connect(std::string_view peer_address) override {
    on_connect();
    return EnginePeer{.address = std::string(peer_address), .engine = fabric_.Find(peer_address)};
  }
  BeginResult Begin(EngineRequest& request, EngineTurn& turn) override {
    const uint64_t context = request.work.request_context;
    begun.push_back(context);
    serials_[context] = request.serial;
    turn.moved += bytes;
    const auto answer = answers.find(context);
    return answer != answers.end() ? answer->second(turn) : default_answer;
  }
  void BeginTogether(std::span<EngineRequest* const> requests, EngineTurn& turn,
                     std::span<BeginResult> results) override {
    together.push_back(requests.size());
    bool ended_well = true;
    for (size_t index = 0; index < requests.size() && ended_well; ++index) {
      results[index] = Begin(*requests[index], turn);
      ended_well = results[index].kind == BeginResult::Kind::kDone && !results[index].IsFailure();
    }
  }
  absl::Status PostReceive(EngineRequest& receive) override {
    serials_[receive.work.request_context] = receive.serial;
    return receive_refusal;
  }
  NtStatus Conclude(EngineRequest& request) override {
    const auto found = conclusions.find(request.work.request_context);
    return found != conclusions.end() ? found->second : request.result.status;
  }
  void RunLater(std::function<void()> job) override { later.push_back(std::move(job)); }
  void Fail() override {
    ++failed;
    on_fail();
    if (abandons) {
      engine().Abandon();
    }
  }
  void Close() override { ++closed; }

  // What a card does.
  bool End(uint64_t context, CardOutcome outcome) {
    const bool ended = engine().Ended(serials_.at(context), outcome);
    engine().Run();
    return ended;
  }
  bool End(uint64_t context, NtStatus status = kOk) { return End(context, CardOutcome{.status = status}); }
  void EndReceive(uint64_t context, NtStatus status = kOk) {
    engine().ReceiveEnded(serials_.at(context), {.request_context = context, .type = kReceived, .status = status});
  }
  void Resume(uint64_t context) { engine().Resume(serials_.at(context)); }

  // Set by the test: additional actions of Connect and Fail, and results of Prepare, Begin and Conclude.
  std::function<void()> on_connect = [] {};
  std::function<void()> on_fail = [] {};
  absl::Status refusal;
  absl::Status receive_refusal;
  BeginResult default_answer = BeginResult::Started();
  std::map<uint64_t, Answer> answers;
  std::map<uint64_t, NtStatus> conclusions;
  // Moved by each request.
  uint64_t bytes = 0;
  bool abandons = true;

  // What the engine did.
  Contexts begun;
  std::vector<size_t> together;
  std::vector<std::function<void()>> later;
  uint32_t issued = 0;
  int failed = 0;
  int closed = 0;

 private:
  EngineFabric& fabric_;
  std::map<uint64_t, uint64_t> serials_;
};

// An engine, its card and its listener.
class EngineSide {
 public:
  EngineSide(EngineFabric& fabric, const std::string& address, const EngineRules& rules = {},
             const QueuePairLimits& limits = kRoomyLimits)
      : card_(new ScriptedCard(fabric)),
        engine_(std::make_shared<QueuePairEngine>(
            std::unique_ptr<EngineCard>(card_),
            QueuePairEngine::Options{.address = address, .limits = limits, .rules = rules}, fabric, listener_)) {
    fabric.Add(address, engine_);
  }
  ~EngineSide() {
    RunLater();
    engine_->Fail();
    engine_->Abandon();
    engine_->Shutdown();
    listener_.Close();
  }
  EngineSide(const EngineSide&) = delete;
  EngineSide& operator=(const EngineSide&) = delete;

  ScriptedCard& card() { return *card_; }
  QueuePairEngine& engine() { return *engine_; }
  Outcomes initiated() const { return listener_.outcomes(WorkQueue::kInitiator); }
  Outcomes received() const { return listener_.outcomes(WorkQueue::kReceive); }
  std::vector<Completion> completions() const { return listener_.completions(WorkQueue::kInitiator); }
  int peer_gone() const { return listener_.peer_gone(); }

  bool ConnectTo(EngineSide& peer) { return engine_->Connect(peer.engine_->address()).ok(); }
  bool Refuses(WorkRequest request, ErrorReason reason) {
    return FailedWith(engine_->Enqueue(std::move(request)).status(), reason);
  }
  void Post(std::vector<WorkRequest> requests) {
    for (WorkRequest& request : requests) {
      EXPECT_TRUE(engine_->Enqueue(std::move(request)).ok());
    }
    engine_->Run();
  }
  void Flush(NtStatus cause = kCancelled) {
    engine_->Fail(cause);
    engine_->Run();
  }
  void EnqueueRefused(const Completion& refusal) { owner_.EnqueueRefused(refusal); }
  // Runs what the engine has left to another thread.
  void RunLater() {
    for (const std::function<void()>& job : std::exchange(card_->later, {})) {
      job();
    }
  }

 private:
  RecordingListener listener_;
  ScriptedCard* const card_;
  const std::shared_ptr<QueuePairEngine> engine_;
  EngineQueuePair owner_{engine_};
};

// A request that needs no peer.
inline WorkRequest Local(uint64_t context) { return Request(context, {}, BindWork{}); }
inline ScriptedCard::Answer Always(const BeginResult& result) {
  return [result](const EngineTurn&) { return result; };
}
// Started at first, done once it is resumed.
inline BeginResult DoneWhenResumed(const EngineTurn& turn) {
  return turn.resumed ? BeginResult::Done(kOk) : BeginResult::Started();
}

// A side that is connected to another.
struct Connected {
  explicit Connected(const EngineRules& rules = {}, const QueuePairLimits& limits = kRoomyLimits)
      : near(fabric, "near", rules, limits) {
    EXPECT_TRUE(near.ConnectTo(far) && far.ConnectTo(near));
  }

  EngineFabric fabric;
  EngineSide far{fabric, "far"};
  EngineSide near;
  ScriptedCard& card = near.card();
};

}  // namespace rnicd::provider
