#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "provider/api/queue_pair.h"
#include "provider/networkdirect/memory/nd_domain.h"

namespace rnicd::provider {

// A queue pair of the card with its completion queue and its connection.
// Lifetime: shared; its pending calls hold what they use of the card, and Close ends them.
// Threads:  safe.
class NdLink : public std::enable_shared_from_this<NdLink> {
 public:
  enum class State : uint8_t { kIdle, kConnecting, kUp, kDown };

  // Called on the loop's thread, and OnDown also on that of Connect. A sink may be destroyed at any time.
  class Sink {
   public:
    virtual ~Sink() = default;
    // Results may be waiting.
    virtual void OnResults(NdLink& link) = 0;
    // It is connected now.
    virtual void OnUp() = 0;
    // It is not connected any more, or, if it never was, could not be; called once.
    virtual void OnDown(bool was_up) = 0;
    // The card reports no more results.
    virtual void OnCardFailed() = 0;
  };

  // Errors: those of NdStatus.
  static absl::StatusOr<std::shared_ptr<NdLink>> Open(std::shared_ptr<NdDomain> domain, const QueuePairLimits& limits);
  ~NdLink() { Close(); }
  NdLink(const NdLink&) = delete;
  NdLink& operator=(const NdLink&) = delete;

  // From now on the sink is called.
  void ListenTo(const std::weak_ptr<Sink>& sink);
  // The card's queue pair; null after Close.
  ComPtr<IND2QueuePair> queue_pair() const;
  // Number of results taken.
  size_t Poll(std::span<ND2_RESULT> results);
  State state() const;
  // Entries that a send, read or write of the card may have.
  uint32_t max_entries() const { return max_entries_; }
  // The same of a receive.
  uint32_t max_receive_entries() const { return max_receive_entries_; }

  // Makes the connection, as the side that asks, or as the one that is asked by this request.
  void Connect(const NdAddress& listener, uint64_t ticket);
  void Accept(ComPtr<IND2Connector> connector);
  // Cancels the outstanding requests and ends the connection, so that the peer notices.
  void Fail();
  // Destroys it. Called when nothing uses it, possibly more than once.
  void Close();

 private:
  NdLink(std::shared_ptr<NdDomain> domain, uint32_t max_entries, uint32_t max_receive_entries)
      : domain_(std::move(domain)), max_entries_(max_entries), max_receive_entries_(max_receive_entries) {}

  absl::Status Create(const QueuePairLimits& limits);
  void Arm();
  void OnNotified(HRESULT result);
  absl::StatusOr<ComPtr<IND2Connector>> NewConnector();
  // The queue pair to connect; null if it must not connect any more.
  ComPtr<IND2QueuePair> EnterConnecting(const ComPtr<IND2Connector>& connector);
  void CompleteConnect(HRESULT connected);
  void EnterUp(HRESULT connected);
  void EnterDown();
  void Disconnect(const ComPtr<IND2Connector>& connector);
  // Begins a call on the connector; `done` is called unless the link is gone by then.
  void Call(const ComPtr<IND2Connector>& connector, const CompletionLoop::Begin& begin, void (NdLink::*done)(HRESULT));
  void OnDisconnected(HRESULT result);
  std::shared_ptr<Sink> LockSink() const;

  const std::shared_ptr<NdDomain> domain_;
  const uint32_t max_entries_;
  const uint32_t max_receive_entries_;

  mutable Mutex mutex_;
  std::weak_ptr<Sink> sink_ RNICD_GUARDED_BY(mutex_);
  State state_ RNICD_GUARDED_BY(mutex_) = State::kIdle;
  bool failed_ RNICD_GUARDED_BY(mutex_) = false;
  bool closed_ RNICD_GUARDED_BY(mutex_) = false;
  ComPtr<IND2CompletionQueue> results_ RNICD_GUARDED_BY(mutex_);
  ComPtr<IND2QueuePair> queue_pair_ RNICD_GUARDED_BY(mutex_);
  ComPtr<IND2Connector> connector_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
