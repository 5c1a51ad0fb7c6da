#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/ndk/network_address.h"
#include "provider/verbs/card/card_list.h"

namespace rnicd::provider {

// The card and port that an id was bound to.
struct CmCard {
  std::string card;
  uint8_t port = 0;
  friend bool operator==(const CmCard&, const CmCard&) = default;
};

// The calls made to librdmacm, one to one, so that tests can substitute a network that fails on demand. Queue pairs are
// the caller's own: an id never has one.
// Results: calls that create an object return null and set errno on failure; all others return 0 or a positive errno.
// Threads: safe, as librdmacm is; calls for one id must not overlap its destruction.
// Source: the man page of each call.
class RdmaCm {
 public:
  virtual ~RdmaCm() = default;

  // rdma_create_event_channel(3), non-blocking. Only processes with the credentials that it was opened with may use it:
  // none that have changed a capability since.
  virtual rdma_event_channel* CreateChannel() = 0;
  virtual void DestroyChannel(rdma_event_channel* channel) = 0;
  // Calls `take` with the next event, and then acknowledges it, because the destruction of an id waits for that. EAGAIN
  // when there is none.
  virtual int NextEvent(rdma_event_channel* channel, absl::FunctionRef<void(const rdma_cm_event&)> take) = 0;

  // An id of RDMA_PS_TCP. `context` becomes that of the id, and of the ids of requests that reach it.
  virtual rdma_cm_id* CreateId(rdma_event_channel* channel, void* context) = 0;
  // After it no event names the id. Rejects a request that is not decided, and ends a connection.
  virtual int DestroyId(rdma_cm_id* id) = 0;
  // RDMA_OPTION_ID_REUSEADDR: other ids with this option may be bound to the same address.
  virtual int ShareAddress(rdma_cm_id* id) = 0;
  virtual int Bind(rdma_cm_id* id, const NetworkAddress& address) = 0;
  // With the longest backlog.
  virtual int Listen(rdma_cm_id* id) = 0;
  virtual int ResolveAddress(rdma_cm_id* id, const NetworkAddress& peer) = 0;
  virtual int ResolveRoute(rdma_cm_id* id) = 0;
  virtual int Connect(rdma_cm_id* id, rdma_conn_param& parameters) = 0;
  virtual int Accept(rdma_cm_id* id, rdma_conn_param& parameters) = 0;
  virtual int Reject(rdma_cm_id* id, std::string_view private_data) = 0;
  virtual int Establish(rdma_cm_id* id) = 0;
  virtual int Disconnect(rdma_cm_id* id) = 0;
  // What the queue pair needs to enter the state in `attributes`: the way to the peer, its number, both first packets.
  virtual int InitQpAttributes(rdma_cm_id* id, ibv_qp_attr& attributes) = 0;

  // For an id that is bound.
  virtual CmCard CardOf(rdma_cm_id* id) = 0;
  virtual NetworkAddress LocalAddress(rdma_cm_id* id) = 0;
  virtual NetworkAddress PeerAddress(rdma_cm_id* id) = 0;

  // The library opens cards for itself and keeps them open: closes this one, which is gone.
  virtual void LetGo(const CardId& card) = 0;
};

// The real librdmacm. Lives until the process exits.
RdmaCm& RdmaCmLibrary();

}  // namespace rnicd::provider
