#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "provider/api/queue_pair.h"
#include "provider/verbs/card/verbs_context.h"
#include "provider/verbs/memory/verbs_domain.h"
#include "provider/verbs/queue/qp_address.h"

namespace rnicd::provider {

// A way to a peer, as rdma_init_qp_attr(3) gives it for the states RTR and RTS, with the limits of reads.
struct QueuePairRoute {
  ibv_qp_attr receiving = {};
  ibv_qp_attr sending = {};
};

// A queue pair of a card with its completion queue: its states, and the windows that it has bound.
// Threads: safe. No post and no change of state begins after Close.
class VerbsQueuePair {
 public:
  VerbsQueuePair(std::shared_ptr<VerbsDomain> domain, const QueuePairLimits& limits)
      : domain_(std::move(domain)), limits_(limits) {}
  ~VerbsQueuePair() { Close(); }
  VerbsQueuePair(const VerbsQueuePair&) = delete;
  VerbsQueuePair& operator=(const VerbsQueuePair&) = delete;

  // Creates it in INIT, with an address. Errors: those of VerbStatus.
  absl::Status Open();
  // From now on the sink is called. Errors: those of VerbStatus.
  absl::Status ListenTo(const std::weak_ptr<CompletionSink>& sink);
  const QpAddress& address() const { return address_; }
  uint32_t MaxSendEntries() const;
  uint32_t MaxReceiveEntries() const;

  // To RTR and to RTS. Errors: QP_ADDRESS_UNKNOWN when the peer's address is the cause; those of VerbStatus.
  absl::Status EnterReceiving(const QpAddress& peer);
  absl::Status EnterSending();
  absl::Status EnterReceiving(const QueuePairRoute& route);
  absl::Status EnterSending(const QueuePairRoute& route);
  // To ERR. Failures are ignored: a removed card has already failed the queue pair.
  void EnterError();
  // False when the card has failed the queue pair.
  bool StillWorks();

  // Results: errno.
  int PostSend(ibv_send_wr& request) { return domain_->api().PostSend(qp_, request); }
  int PostReceive(ibv_recv_wr& request) { return domain_->api().PostRecv(qp_, request); }
  // Number of completions taken; with `arm`, the sink is called for those that come later.
  int Poll(std::span<ibv_wc> completions, bool arm);

  BoundWindows& bound() { return bound_; }
  void Close();

 private:
  absl::Status Create();
  absl::Status EnterInit();
  absl::Status ToReceiving(ibv_qp_attr attributes);
  absl::Status ToSending(ibv_qp_attr attributes);
  // Result: errno.
  int ChangeState(ibv_qp_attr& attributes, int mask);

  const std::shared_ptr<VerbsDomain> domain_;
  const QueuePairLimits limits_;
  // Set once by Open.
  bool ethernet_ = true;
  QpAddress address_;

  // Held while the queue pair connects, so that it is not destroyed meanwhile; taken before the next.
  Mutex states_mutex_;
  // Held while the completion queue is used, so that it is not destroyed meanwhile.
  Mutex queues_mutex_;
  ibv_cq* cq_ RNICD_GUARDED_BY(queues_mutex_) = nullptr;
  // Set once by Open; destroyed by Close, when nothing uses it.
  ibv_qp* qp_ = nullptr;
  BoundWindows bound_;
};

}  // namespace rnicd::provider
