#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "provider/verbs/connection/rdma_cm.h"

namespace rnicd::provider {

// A connection manager for the card of FakeVerbs, whose ids reach each other only. It gives the events and errors that
// were measured with the kernel's on RoCE, and pads private data as that does; or those of iWARP. Unlike the kernel's
// of Linux 6.1 it reports a request that its caller withdraws.
// Lifetime: outlives its users. The destructor fails the process if an id is left.
// Threads: safe.
class FakeRdmaCm final : public RdmaCm {
 public:
  explicit FakeRdmaCm(bool is_iwarp = false);
  ~FakeRdmaCm() override;
  FakeRdmaCm(const FakeRdmaCm&) = delete;
  FakeRdmaCm& operator=(const FakeRdmaCm&) = delete;

  rdma_event_channel* CreateChannel() override { return &channel_; }
  void DestroyChannel(rdma_event_channel* /*channel*/) override {}
  int NextEvent(rdma_event_channel* channel, absl::FunctionRef<void(const rdma_cm_event&)> take) override;
  rdma_cm_id* CreateId(rdma_event_channel* channel, void* context) override;
  int DestroyId(rdma_cm_id* id) override;
  int ShareAddress(rdma_cm_id* id) override;
  int Bind(rdma_cm_id* id, const NetworkAddress& address) override;
  int Listen(rdma_cm_id* id) override;
  int ResolveAddress(rdma_cm_id* id, const NetworkAddress& peer) override;
  int ResolveRoute(rdma_cm_id* id) override;
  int Connect(rdma_cm_id* id, rdma_conn_param& parameters) override;
  int Accept(rdma_cm_id* id, rdma_conn_param& parameters) override;
  int Reject(rdma_cm_id* id, std::string_view private_data) override;
  int Establish(rdma_cm_id* id) override;
  int Disconnect(rdma_cm_id* id) override;
  int InitQpAttributes(rdma_cm_id* id, ibv_qp_attr& attributes) override;
  CmCard CardOf(rdma_cm_id* id) override;
  NetworkAddress LocalAddress(rdma_cm_id* id) override;
  NetworkAddress PeerAddress(rdma_cm_id* id) override;
  void LetGo(const CardId& /*card*/) override {}

 private:
  struct Id;
  struct Event {
    rdma_cm_event raw = {};
    std::string data;
  };

  Id& Find(rdma_cm_id* id) const RNICD_REQUIRES(mutex_);
  Id& Make(void* context) RNICD_REQUIRES(mutex_);
  void Push(Id& id, rdma_cm_event_type type, int status = 0) RNICD_REQUIRES(mutex_);
  // With what `from` says, in the view of the reader.
  void Push(Id& id, rdma_cm_event_type type, const rdma_conn_param& from, size_t padded) RNICD_REQUIRES(mutex_);
  void PushRejection(Id& id, int status, std::string_view data) RNICD_REQUIRES(mutex_);
  void Signal() RNICD_REQUIRES(mutex_);

  const bool is_iwarp_;
  const UniqueFd signal_;
  rdma_event_channel channel_;
  Mutex mutex_;
  ConditionVariable acknowledged_;
  std::set<std::unique_ptr<Id>> ids_ RNICD_GUARDED_BY(mutex_);
  std::deque<Event> events_ RNICD_GUARDED_BY(mutex_);
  // The id whose event is taken and not acknowledged.
  const rdma_cm_id* taken_ RNICD_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace rnicd::provider
