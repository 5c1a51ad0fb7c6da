#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "provider/api/queue_pair.h"
#include "provider/engine/ring_buffer.h"

namespace rnicd::provider {

// What a card keeps for a request. Used again for later requests.
class CardRequest {
 public:
  virtual ~CardRequest() = default;
  // Releases what the request held.
  virtual void Clear() = 0;
};

// A request in a queue of an engine. Its address is constant until it is reported.
struct EngineRequest {
  enum class Stage : uint8_t {
    kQueued,
    // In EngineCard::Begin, or, for a receive, with the peer or the card that fills it.
    kRunning,
    // The card works on it.
    kStarted,
    // Waits for the runner, to begin for the second time.
    kResumed,
    kDone,
  };

  bool IsRead() const { return std::holds_alternative<ReadWork>(work.work); }
  // Needs no peer.
  bool IsLocal() const {
    return std::holds_alternative<FastRegisterWork>(work.work) || std::holds_alternative<InvalidateWork>(work.work) ||
           std::holds_alternative<BindWork>(work.work);
  }
  // Releases what the request held.
  void Clear() {
    if (card != nullptr) {
      card->Clear();
    }
    work = WorkRequest{};
  }

  WorkRequest work;
  // The card's; null until Prepare sets it.
  std::unique_ptr<CardRequest> card;
  // Issued to a FastRegisterWork or BindWork.
  RemoteToken token;
  // Identifies the request in its queue.
  uint64_t serial = 0;
  Stage stage = Stage::kQueued;
  // Later requests do not begin until this one has ended.
  bool holds_back = false;
  Completion result;
};

// Requests of one queue, oldest first. Serials have no gaps, so a serial gives the position of its request.
class RequestQueue {
 public:
  bool empty() const { return requests_.empty(); }
  size_t size() const { return requests_.size(); }
  // Number of requests, from the front, that have begun.
  size_t begun() const { return begun_; }
  EngineRequest& operator[](size_t index) { return *requests_[index]; }
  const EngineRequest& operator[](size_t index) const { return *requests_[index]; }
  EngineRequest& front() { return (*this)[0]; }
  // Null when the request has been reported.
  EngineRequest* Find(uint64_t serial) {
    return serial >= first_ && serial - first_ < size() ? requests_[serial - first_].get() : nullptr;
  }
  bool FrontIsDone() const { return !empty() && (*this)[0].stage == EngineRequest::Stage::kDone; }

  EngineRequest& Push(std::unique_ptr<EngineRequest> request) {
    request->serial = first_ + size();
    requests_.PushBack(std::move(request));
    return (*this)[size() - 1];
  }
  std::unique_ptr<EngineRequest> PopFront() {
    ++first_;
    begun_ -= begun_ > 0 ? 1 : 0;
    return requests_.PopFront();
  }
  std::unique_ptr<EngineRequest> PopBack() { return requests_.PopBack(); }
  EngineRequest& Begin() { return (*this)[begun_++]; }
  // Takes back the youngest request that has begun.
  void UndoBegin() { --begun_; }

 private:
  RingBuffer<std::unique_ptr<EngineRequest>> requests_;
  uint64_t first_ = 1;
  size_t begun_ = 0;
};

}  // namespace rnicd::provider
