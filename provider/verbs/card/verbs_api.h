#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "provider/verbs/card/card_list.h"

namespace rnicd::provider {

// One entry of a port's GID table.
struct GidEntry {
  ibv_gid gid = {};
  // Index in the table; the kernel may move an address to another index.
  uint32_t index = 0;
  // IBV_GID_TYPE_IB, _ROCE_V1 or _ROCE_V2.
  uint32_t type = 0;
};

// The part of VerbsApi that registers memory.
class VerbsMemoryApi {
 public:
  virtual ~VerbsMemoryApi() = default;

  // ibv_reg_mr_iova(3).
  virtual ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) = 0;
  // ibv_reg_dmabuf_mr(3). By default as a card whose library has none, which rxe's is.
  virtual ibv_mr* RegDmabufMr(ibv_pd* /*pd*/, uint64_t /*offset*/, size_t /*length*/, uint64_t /*iova*/, int /*file*/,
                              int /*access*/) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  virtual int DeregMr(ibv_mr* mr) = 0;
  // ibv_alloc_mw(3), type 2.
  virtual ibv_mw* AllocMw(ibv_pd* pd) = 0;
  virtual int DeallocMw(ibv_mw* mw) = 0;
};

// The calls made to libibverbs, one to one, so that tests can substitute a card that fails on demand.
// Results: calls that create an object return null and set errno on failure; all others return 0 or a positive errno.
// Threads: safe, as libibverbs is.
// Source: the man page of each call.
class VerbsApi : public VerbsMemoryApi {
 public:
  virtual CardList& cards() = 0;
  // ibv_open_device(3); makes the asynchronous event descriptor non-blocking. ENODEV when this card is gone.
  virtual ibv_context* Open(const CardId& card) = 0;
  virtual int Close(ibv_context* context) = 0;
  virtual int QueryDevice(ibv_context* context, ibv_device_attr& attributes) = 0;
  virtual int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr& attributes) = 0;
  // The table entries that are set. Empty when the device has been removed.
  virtual std::vector<GidEntry> QueryGids(ibv_context* context, uint8_t port) = 0;
  // The next asynchronous event, already acknowledged; EAGAIN when there is none. Objects it names may have been
  // destroyed.
  virtual int NextAsyncEvent(ibv_context* context, ibv_async_event& event) = 0;

  virtual ibv_pd* AllocPd(ibv_context* context) = 0;
  virtual int DeallocPd(ibv_pd* pd) = 0;

  // ibv_create_comp_channel(3), non-blocking.
  virtual ibv_comp_channel* CreateChannel(ibv_context* context) = 0;
  virtual int DestroyChannel(ibv_comp_channel* channel) = 0;
  // The next queue with a completion event, already acknowledged; null when there is none.
  virtual ibv_cq* NextCqEvent(ibv_comp_channel* channel) = 0;
  virtual ibv_cq* CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) = 0;
  virtual int DestroyCq(ibv_cq* cq) = 0;
  // ibv_req_notify_cq(3), for any completion.
  virtual int ArmCq(ibv_cq* cq) = 0;
  // The number of completions, at most `max`; negative when the device failed.
  virtual int PollCq(ibv_cq* cq, int max, ibv_wc* completions) = 0;

  virtual ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr& attributes) = 0;
  virtual int ModifyQp(ibv_qp* qp, ibv_qp_attr& attributes, int mask) = 0;
  virtual int QueryQpState(ibv_qp* qp, ibv_qp_state& state) = 0;
  virtual int DestroyQp(ibv_qp* qp) = 0;
  virtual int PostSend(ibv_qp* qp, ibv_send_wr& request) = 0;
  virtual int PostRecv(ibv_qp* qp, ibv_recv_wr& request) = 0;
};

// The real libibverbs. Lives until the process exits.
VerbsApi& RdmaCore();

}  // namespace rnicd::provider
