#pragma once

#include <cstdint>
#include <optional>

#include "provider/verbs/card/verbs_context.h"

namespace rnicd::provider {

// How much each write of a probe moves.
inline constexpr uint32_t kWrittenBytes = 8;

// Two queue pairs of a port connected to each other, to find out what a card does. The owner's memory is accessed by
// the peer.
// Lifetime: outlived by the domain.
// Threads: one.
class ProbePair {
 public:
  ProbePair(VerbsContext& context, ibv_pd* pd) : context_(context), pd_(pd) {}
  ProbePair(const ProbePair&) = delete;
  ProbePair& operator=(const ProbePair&) = delete;
  ~ProbePair();

  // False when an object cannot be created, or the port has no address.
  bool Connect();
  ibv_qp* owner() const { return owner_; }
  // Status of a request; nullopt when no completion arrives. Signals the request.
  std::optional<ibv_wc_status> RunOnOwner(ibv_send_wr& request) { return Run(owner_, request); }
  std::optional<ibv_wc_status> RunOnPeer(ibv_send_wr& request) { return Run(peer_, request); }
  // A write of the peer.
  std::optional<ibv_wc_status> Write(ibv_sge source, uint64_t address, uint32_t key);
  // A message of the peer without bytes, which asks the owner's card to invalidate the key. True when it has arrived.
  bool SendInvalidate(uint32_t key);

 private:
  VerbsApi& api() { return context_.api(); }
  ibv_qp* MakeQueuePair();
  bool ConnectTo(ibv_qp* from, ibv_qp* to, const PortAddress& port);
  bool Modify(ibv_qp* qp, ibv_qp_attr& attributes, ibv_qp_state state, int mask);
  std::optional<ibv_wc_status> Run(ibv_qp* qp, ibv_send_wr& request);
  std::optional<ibv_wc_status> Await();

  VerbsContext& context_;
  ibv_pd* const pd_;
  ibv_cq* cq_ = nullptr;
  ibv_qp* owner_ = nullptr;
  ibv_qp* peer_ = nullptr;
};

}  // namespace rnicd::provider
