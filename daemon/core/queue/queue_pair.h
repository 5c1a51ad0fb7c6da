#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/ndk/adapter_info.h"
#include "base/ndk/queue_pair.h"
#include "base/ndk/work_request.h"
#include "daemon/core/queue/completion_queue.h"
#include "daemon/core/region/protection_domain.h"
#include "daemon/core/request/address_book.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/request/event_queue.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/core/tenant/observation.h"
#include "provider/api/queue_pair.h"

namespace rnicd::core {

// An NDK queue pair. The rules for its requests are in work_request_resolver.h; order and execution are the card's.
// Lifetime: holds its domain and its completion queues open. Closing flushes; nothing is reported afterwards.
// Threads:  safe.
// Source:   NDK_FN_CREATE_QP, NDK_FN_FLUSH, NDK_FN_CLOSE_OBJECT.
class QueuePair final : public Closable, public EventSource, private provider::QueuePairListener {
 public:
  struct Options {
    QueuePairLimits limits;
    // The consumer's context for completions and events.
    uint64_t context = 0;
    std::shared_ptr<Charge> charge;
    Charge entries;
    // For the lists of the entries: HeapOfLists.
    Charge lists;
  };
  // Bytes of the scatter-gather lists and inline data that the queues have room for.
  static uint64_t HeapOfLists(const QueuePairLimits& limits);
  // Checks the options, before anything is charged. Errors: ABOVE_ADAPTER_LIMIT, ADAPTER_MISMATCH, CQ_OVERRUN.
  static absl::Status Check(const ProtectionDomain& domain, const CompletionQueue& receive_queue,
                            const CompletionQueue& initiator_queue, const QueuePairLimits& limits);
  // Requires options that passed Check. `events` and `observer` outlive the queue pair. Errors: OBJECT_CLOSING,
  // DEVICE_OUT_OF_RESOURCES, DEVICE_FAILED.
  static absl::StatusOr<std::shared_ptr<QueuePair>> Create(std::shared_ptr<ProtectionDomain> domain,
                                                           std::shared_ptr<CompletionQueue> receive_queue,
                                                           std::shared_ptr<CompletionQueue> initiator_queue,
                                                           Options options, EventQueue& events, Observer& observer);

  // Must be called before the peer can learn the address. `on_peer_lost`, if not empty, is called once at most, when
  // the peer has ended, on any thread; it must not call the queue pair.
  void Publish(QueuePairId id, std::function<void()> on_peer_lost);

  // What keeps the address known to others while the queue pair is open.
  void KeepUntilClosed(AddressBook::Hold address) { held_.address = std::move(address); }

  // Reserves the queue pair for a connector: nobody else may connect it, and `on_peer_lost` is called in place of the
  // event QpDisconnected. Errors: CONNECTION_ACTIVE; QP_NOT_CONNECTABLE.
  absl::Status Tie(std::function<void()> on_peer_lost);
  // After a connection that was not made.
  void Untie();
  // Errors: CONNECTION_ACTIVE while a connector has the queue pair.
  absl::Status CheckUntied() const;
  // False: the connection was made without reads.
  void SetMayRead(bool may_read) { may_read_.store(may_read); }
  bool may_read() const { return may_read_.load(); }

  const std::shared_ptr<ProtectionDomain>& domain() const { return domain_.shared(); }
  const QueuePairLimits& limits() const { return limits_; }
  bool Uses(const CompletionQueue& queue) const { return &*receive_queue_ == &queue || &*initiator_queue_ == &queue; }
  // Valid until closed: call with a Hold.
  provider::DeviceQueuePair& device() { return *device_; }
  // Flushes, and reports the end of the peer if there was one: the card is gone. Call with a Hold.
  void LoseCard();
  // State reported by the card; kError from the moment a completion queue has overrun. Call with a Hold.
  QueuePairState state() const { return DeadQueue() ? QueuePairState::kError : device_->state(); }
  // Errors: QUEUE_FULL, QP_NOT_CONNECTED, also once a completion queue has overrun.
  absl::StatusOr<RemoteToken> Enqueue(provider::WorkRequest&& request);
  // Completes, in its place, a request that was refused with this error; that fails the queue pair.
  void EnqueueRefused(const WorkRequest& request, const absl::Status& refusal);

  Taken TakeEvent() override;
  const std::shared_ptr<Charge>& charge() const { return charge_; }

 private:
  QueuePair(Kept<ProtectionDomain> domain, Kept<CompletionQueue> receive_queue, Kept<CompletionQueue> initiator_queue,
            Options options, EventQueue& events, Observer& observer);

  // What it has until it is closed.
  struct Held {
    Charge entries;
    Charge lists;
    AddressBook::Hold address;
  };
  // What hears of the peer's end, until the queue pair is closed.
  struct PeerLoss {
    std::function<void()> flush;
    // The connector's, in place of an event; null without one.
    std::function<void()> tie;
    bool told = false;
    bool closed = false;
  };

  bool DeadQueue() const { return receive_queue_->overrun() || initiator_queue_->overrun(); }
  void OnCompletion(provider::WorkQueue queue, const provider::Completion& completion) override;
  void OnPeerDisconnected() override;
  void Finalize() override;
  void ReleaseParents() override;

  Kept<ProtectionDomain> domain_;
  Kept<CompletionQueue> receive_queue_;
  Kept<CompletionQueue> initiator_queue_;
  const QueuePairLimits limits_;
  const uint64_t context_;
  const std::shared_ptr<Charge> charge_;
  Held held_;
  EventQueue& events_;
  Observer& observer_;

  std::atomic<uint64_t> id_ = 0;

  std::atomic<bool> may_read_{true};

  mutable Mutex mutex_;
  PeerLoss peer_loss_ RNICD_GUARDED_BY(mutex_);

  // Last, so that it is destroyed first: it reports until then.
  std::unique_ptr<provider::DeviceQueuePair> device_;
};

}  // namespace rnicd::core
