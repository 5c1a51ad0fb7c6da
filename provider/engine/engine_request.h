#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "provider/api/queue_pair.h"

namespace rnicd::provider {

// How a request ended at the card. A failure fails its queue pair.
struct CardOutcome {
  NtStatus status = NtStatus::kSuccess;
  // The peer's memory or its card refused the access, and the peer fails as well.
  bool at_peer = false;
  // The peer did not answer or has ended the connection.
  bool peer_lost = false;
  friend bool operator==(const CardOutcome&, const CardOutcome&) = default;
};

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
    // The card is done with it, and the peer has not reported yet whether it invalidated the token.
    kUnanswered,
    kDone,
  };

  // Was refused when it was posted, and only waits to be reported: the card does not see it.
  bool IsRefused() const { return result.refusal != ErrorReason::UNSPECIFIED; }
  bool IsRead() const { return std::holds_alternative<ReadWork>(work.work); }
  // Needs no peer.
  bool IsLocal() const {
    return std::holds_alternative<FastRegisterWork>(work.work) || std::holds_alternative<InvalidateWork>(work.work) ||
           std::holds_alternative<BindWork>(work.work);
  }
  void End(const CardOutcome& outcome) {
    stage = Stage::kDone;
    result.status = outcome.status;
    result.at_peer = outcome.at_peer;
  }
  // Releases what the request held.
  void Clear() {
    if (card != nullptr) {
      card->Clear();
    }
    work.payload.emplace<Entries>();
    work.keep_alive = nullptr;
    work.work.emplace<ReceiveWork>();
  }

  WorkRequest work;
  // The card's; null until Prepare sets it.
  std::unique_ptr<CardRequest> card;
  // Identifies the request in its queue.
  uint64_t serial = 0;
  // Issued to a FastRegisterWork or BindWork.
  RemoteToken token;
  Stage stage = Stage::kQueued;
  // Later requests do not begin until this one has ended.
  bool holds_back = false;
  Completion result;
};

// Requests of one queue, oldest first, in a ring that doubles when it is full. Serials have no gaps, so a serial gives
// the position of its request.
class RequestQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Number of requests, from the front, that have begun.
  size_t begun() const { return begun_; }
  EngineRequest& operator[](size_t index) const { return *slots_[(first_serial_ + index) & (slots_.size() - 1)]; }
  EngineRequest& front() const { return (*this)[0]; }
  bool FrontIsDone() const { return !empty() && front().stage == EngineRequest::Stage::kDone; }
  // Null when the request has been reported.
  EngineRequest* Find(uint64_t serial) const {
    return serial >= first_serial_ && serial - first_serial_ < size_ ? &(*this)[serial - first_serial_] : nullptr;
  }

  EngineRequest& Push(std::unique_ptr<EngineRequest> request) {
    if (size_ == slots_.size()) {
      Grow();
    }
    request->serial = first_serial_ + size_;
    ++size_;
    std::unique_ptr<EngineRequest>& slot = SlotOf(request->serial);
    slot = std::move(request);
    return *slot;
  }
  std::unique_ptr<EngineRequest> PopFront() {
    begun_ -= begun_ > 0 ? 1 : 0;
    --size_;
    return std::move(SlotOf(first_serial_++));
  }
  std::unique_ptr<EngineRequest> PopBack() { return std::move(SlotOf(first_serial_ + --size_)); }
  EngineRequest& Begin() { return (*this)[begun_++]; }
  // Takes back the youngest request that has begun.
  void UndoBegin() { --begun_; }

 private:
  static constexpr size_t kFirstCapacity = 16;

  std::unique_ptr<EngineRequest>& SlotOf(uint64_t serial) { return slots_[serial & (slots_.size() - 1)]; }
  void Grow() {
    std::vector<std::unique_ptr<EngineRequest>> slots(slots_.empty() ? kFirstCapacity : 2 * slots_.size());
    slots.swap(slots_);
    for (std::unique_ptr<EngineRequest>& request : slots) {
      SlotOf(request->serial) = std::move(request);
    }
  }

  // Their number is a power of 2; a request is in the slot of its serial.
  std::vector<std::unique_ptr<EngineRequest>> slots_;
  uint64_t first_serial_ = 1;
  size_t size_ = 0;
  size_t begun_ = 0;
};

}  // namespace rnicd::provider
