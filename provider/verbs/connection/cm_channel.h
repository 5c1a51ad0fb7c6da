#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "provider/api/connection.h"
#include "provider/verbs/card/event_loop.h"
#include "provider/verbs/connection/cm_ends.h"
#include "provider/verbs/connection/rdma_cm.h"

namespace rnicd::provider {

class CmSink;

// An id of the connection manager.
// Lifetime: outlived by its channel.
class CmId {
 public:
  // `raw` has a context for the sink.
  CmId(RdmaCm& cm, rdma_cm_id* raw, std::unique_ptr<std::weak_ptr<CmSink>> context)
      : cm_(cm), raw_(raw), context_(std::move(context)) {}
  ~CmId();
  CmId(const CmId&) = delete;
  CmId& operator=(const CmId&) = delete;

  rdma_cm_id* raw() const { return raw_; }
  // On the channel's thread.
  void SetSink(std::weak_ptr<CmSink> sink) { *context_ = std::move(sink); }

 private:
  RdmaCm& cm_;
  rdma_cm_id* const raw_;
  std::unique_ptr<std::weak_ptr<CmSink>> context_;
};

// An event that was acknowledged.
struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_RESOLVED;
  int status = 0;
  // The peer's, of events that have one.
  ConnectionOffer offer;
  // With CONNECT_REQUEST: that of the connection.
  std::shared_ptr<CmId> requested;
};

// Events of one id, on the channel's thread.
class CmSink {
 public:
  virtual ~CmSink() = default;
  virtual void OnEvent(CmEvent event) = 0;
};

// The way to the connection manager, and a thread of its own for its events, so that neither they nor the event loop of
// the cards wait for each other.
// Threads: safe.
class CmChannel final : public EventLoop::Handler, public std::enable_shared_from_this<CmChannel> {
 public:
  // `cm` outlives it. Errors: those of VerbStatus.
  static absl::StatusOr<std::shared_ptr<CmChannel>> Open(RdmaCm& cm);
  ~CmChannel() override;

  RdmaCm& cm() { return cm_; }
  CmEnds& ends() { return ends_; }
  // Errors: those of VerbStatus.
  absl::StatusOr<std::shared_ptr<CmId>> CreateId(std::weak_ptr<CmSink> sink);
  // Runs the job on the channel's thread.
  void Post(std::function<void()> job);
  // Runs a job that may block on a thread of its own; false where there are too many.
  bool RunApart(std::function<void()> job);
  // Once it has returned, no sink is called and no job runs. Must be called before the end, and not on the channel's
  // thread.
  void Stop();

  bool OnReadable(int descriptor) override;
  void OnTick() override {}

 private:
  CmChannel(RdmaCm& cm, rdma_event_channel* channel);

  void RunJobs();
  void Dispatch(const rdma_cm_event& raw, std::shared_ptr<CmSink>& sink, CmEvent& event);

  RdmaCm& cm_;
  rdma_event_channel* const channel_;
  const UniqueFd wake_;
  CmEnds ends_;
  Mutex mutex_;
  std::vector<std::function<void()>> jobs_ RNICD_GUARDED_BY(mutex_);
  // Jobs that run apart.
  int apart_ RNICD_GUARDED_BY(mutex_) = 0;
  ConditionVariable none_apart_;
  EventLoop loop_;
};

}  // namespace rnicd::provider
