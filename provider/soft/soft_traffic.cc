#include "provider/soft/soft_traffic.h"

#include "provider/engine/engine_queue_pair.h"
#include "provider/soft/soft_endpoint.h"
#include "provider/soft/soft_fabric.h"

namespace rnicd::provider {
namespace {

// Requests of a link that await their answers at a time.
constexpr uint32_t kRequestsMax = 64;

SoftRemote& RemoteOf(const QueuePairEngine& engine) {
  return static_cast<SoftEndpoint&>(EngineQueuePair::CardOf(engine)).remote();
}

}  // namespace

SoftTraffic::Sent SoftTraffic::SendRequest(uint64_t link, const SoftRequest& request, QueuePairEngine& sender) {
  {
    MutexLock lock(mutex_);
    Room& room = rooms_[link];
    if (request.offset == 0 && room.used >= kRequestsMax) {
      room.waiting[&sender] = sender.weak_from_this();
      return Sent::kFull;
    }
    ++room.used;
  }
  if (network_->Send(link, request)) {
    return Sent::kYes;
  }
  MutexLock lock(mutex_);
  if (const auto found = rooms_.find(link); found != rooms_.end() && found->second.waiting.empty()) {
    rooms_.erase(found);
  }
  return Sent::kLost;
}

void SoftTraffic::OnFrame(uint64_t link, SoftFrame frame) {
  fabric_.worker().Post([this, link, frame = std::move(frame)] {
    Take(link, frame);
    network_->Taken(link);
  });
}

void SoftTraffic::OnLost(uint64_t link) {
  fabric_.worker().Post([this, link] { Lose(link); });
}

void SoftTraffic::Take(uint64_t link, const SoftFrame& frame) {
  if (const auto* const request = std::get_if<SoftRequest>(&frame)) {
    TakeRequest(link, *request);
  } else if (const auto* const reply = std::get_if<SoftReply>(&frame)) {
    TakeReply(link, *reply);
  } else if (const auto* const message = std::get_if<SoftMessage>(&frame)) {
    SoftMessage arrived = *message;
    arrived.link = link;
    fabric_.net().Deliver(arrived);
  }
}

void SoftTraffic::TakeRequest(uint64_t link, const SoftRequest& request) {
  const std::shared_ptr<QueuePairEngine> engine = fabric_.Find(SoftFabric::AddressOf(request.to));
  if (engine != nullptr) {
    RemoteOf(*engine).OnRequest(link, request);
  } else {
    SendReply(link, {.to = request.from, .from = request.to, .serial = request.serial});
  }
}

void SoftTraffic::TakeReply(uint64_t link, const SoftReply& reply) {
  if (const std::shared_ptr<QueuePairEngine> engine = fabric_.Find(SoftFabric::AddressOf(reply.to));
      engine != nullptr) {
    RemoteOf(*engine).OnReply(link, reply);
  }
  Waiting waiting;
  {
    MutexLock lock(mutex_);
    const auto found = rooms_.find(link);
    const bool answers = reply.serial != 0 && reply.result != SoftReply::Result::kAgain;
    if (found == rooms_.end() || !answers || found->second.used == 0) {
      return;
    }
    if (--found->second.used <= kRequestsMax / 2) {
      waiting.swap(found->second.waiting);
    }
  }
  RunAll(waiting);
}

void SoftTraffic::Lose(uint64_t link) {
  fabric_.net().LoseLink(link);
  for (const std::shared_ptr<QueuePairEngine>& engine : fabric_.All()) {
    RemoteOf(*engine).OnLost(link);
  }
  Waiting waiting;
  {
    MutexLock lock(mutex_);
    if (const auto found = rooms_.find(link); found != rooms_.end()) {
      waiting.swap(found->second.waiting);
      rooms_.erase(found);
    }
  }
  RunAll(waiting);
}

void SoftTraffic::RunAll(const Waiting& waiting) {
  for (const auto& [key, weak] : waiting) {
    if (const std::shared_ptr<QueuePairEngine> engine = weak.lock(); engine != nullptr) {
      engine->Run();
    }
  }
}

}  // namespace rnicd::provider
