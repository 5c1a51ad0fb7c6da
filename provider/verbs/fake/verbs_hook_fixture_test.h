#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "provider/verbs/card/verbs_api.h"

namespace rnicd::provider {

// Forwards every call to a card, after the hooks of a test.
// Threads: safe when the hooks are.
class HookedVerbs final : public VerbsApi {
 public:
  explicit HookedVerbs(VerbsApi& card) : card_(card) {}

  using Hook = std::function<void(std::string_view call)>;
  using PostReceive = std::function<int(ibv_qp* qp, ibv_recv_wr& request)>;

  // Called without a lock, with the name of a call, before it is forwarded. Null: no hook.
  void set_before(Hook hook) {
    MutexLock lock(mutex_);
    before_ = std::move(hook);
  }
  // Replaces the card's result. Null: the card's result is returned.
  void set_post_receive(PostReceive answer) {
    MutexLock lock(mutex_);
    post_receive_ = std::move(answer);
  }

  CardList& cards() override { return card_.cards(); }
  ibv_context* Open(const CardId& card) override { return Before("Open").Open(card); }
  int Close(ibv_context* context) override { return Before("Close").Close(context); }
  int QueryDevice(ibv_context* context, ibv_device_attr& attributes) override {
    return card_.QueryDevice(context, attributes);
  }
  int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr& attributes) override {
    return card_.QueryPort(context, port, attributes);
  }
  std::vector<GidEntry> QueryGids(ibv_context* context, uint8_t port) override {
    return card_.QueryGids(context, port);
  }
  int NextAsyncEvent(ibv_context* context, ibv_async_event& event) override {
    return card_.NextAsyncEvent(context, event);
  }
  ibv_pd* AllocPd(ibv_context* context) override { return card_.AllocPd(context); }
  int DeallocPd(ibv_pd* pd) override { return card_.DeallocPd(pd); }
  ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) override {
    return Before("RegMr").RegMr(pd, address, length, iova, access);
  }
  int DeregMr(ibv_mr* mr) override { return Before("DeregMr").DeregMr(mr); }
  ibv_mw* AllocMw(ibv_pd* pd) override { return card_.AllocMw(pd); }
  int DeallocMw(ibv_mw* mw) override { return card_.DeallocMw(mw); }
  ibv_comp_channel* CreateChannel(ibv_context* context) override { return card_.CreateChannel(context); }
  int DestroyChannel(ibv_comp_channel* channel) override { return card_.DestroyChannel(channel); }
  ibv_cq* NextCqEvent(ibv_comp_channel* channel) override { return card_.NextCqEvent(channel); }
  ibv_cq* CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) override {
    return card_.CreateCq(context, entries, channel);
  }
  int DestroyCq(ibv_cq* cq) override { return card_.DestroyCq(cq); }
  int ArmCq(ibv_cq* cq) override { return card_.ArmCq(cq); }
  int PollCq(ibv_cq* cq, int max, ibv_wc* completions) override { return card_.PollCq(cq, max, completions); }
  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr& attributes) override {
    return Before("CreateQp").CreateQp(pd, attributes);
  }
  int ModifyQp(ibv_qp* qp, ibv_qp_attr& attributes, int mask) override {
    return Before("ModifyQp").ModifyQp(qp, attributes, mask);
  }
  int QueryQpState(ibv_qp* qp, ibv_qp_state& state) override { return Before("QueryQpState").QueryQpState(qp, state); }
  int DestroyQp(ibv_qp* qp) override { return Before("DestroyQp").DestroyQp(qp); }
  int PostSend(ibv_qp* qp, ibv_send_wr& request) override { return Before("PostSend").PostSend(qp, request); }
  int PostRecv(ibv_qp* qp, ibv_recv_wr& request) override {
    PostReceive answer;
    {
      MutexLock lock(mutex_);
      answer = post_receive_;
    }
    return answer ? answer(qp, request) : card_.PostRecv(qp, request);
  }

 private:
  VerbsApi& Before(std::string_view call) {
    Hook hook;
    {
      MutexLock lock(mutex_);
      hook = before_;
    }
    if (hook) {
      hook(call);
    }
    return card_;
  }

  VerbsApi& card_;
  Mutex mutex_;
  Hook before_ RNICD_GUARDED_BY(mutex_);
  PostReceive post_receive_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
