#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "provider/verbs/card/event_loop.h"
#include "provider/verbs/card/pinned_pages.h"
#include "provider/verbs/card/verbs_device.h"

namespace rnicd::provider {

// Callbacks of the owner of a completion queue. Called on the loop's thread.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  // The queue has completions.
  virtual void OnCqEvent() = 0;
  virtual void OnTick() = 0;
  // The card reported an asynchronous event, possibly about this queue pair.
  virtual void OnCardEvent() = 0;
  // The card was removed: no completion will arrive.
  virtual void OnDeviceRemoved() = 0;
};

// One opening of a card. Each session has its own, so that closing it releases everything the kernel holds for that
// session.
// Lifetime: shared by the objects created in it.
// Threads: safe.
class VerbsContext final : public EventLoop::Handler, public std::enable_shared_from_this<VerbsContext> {
 public:
  // `events`: this opening reports the asynchronous events of the card; exactly one opening of each port does.
  // Errors: those of VerbStatus.
  static absl::StatusOr<std::shared_ptr<VerbsContext>> Open(std::shared_ptr<VerbsNode> node,
                                                            std::shared_ptr<VerbsDevice> device, bool events);
  ~VerbsContext() override;

  VerbsNode& node() { return *node_; }
  VerbsApi& api() { return node_->api; }
  VerbsDevice& device() { return *device_; }
  ibv_context* raw() { return context_; }
  PinnedPages& pinned_pages() { return *pinned_pages_; }

  // Creates a queue without a sink; RemoveQueue destroys it. Errors: those of VerbStatus.
  absl::StatusOr<ibv_cq*> MakeQueue(uint32_t entries);
  // Arms the queue; from now on the sink is called. Errors: those of VerbStatus.
  absl::Status ListenTo(ibv_cq* cq, const std::weak_ptr<CompletionSink>& sink);
  void RemoveQueue(ibv_cq* cq);

  bool OnReadable(int descriptor) override;
  void OnTick() override;

 private:
  VerbsContext(std::shared_ptr<VerbsNode> node, std::shared_ptr<VerbsDevice> device, bool events)
      : node_(std::move(node)), device_(std::move(device)), events_(events) {}

  absl::Status OpenHandles();
  std::shared_ptr<CompletionSink> FindSink(ibv_cq* cq);
  std::vector<std::shared_ptr<CompletionSink>> Sinks();
  bool ReadAsyncEvents();

  const std::shared_ptr<VerbsNode> node_;
  const std::shared_ptr<VerbsDevice> device_;
  const bool events_;
  const std::shared_ptr<PinnedPages> pinned_pages_ = std::make_shared<PinnedPages>();
  ibv_context* context_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;

  Mutex mutex_;
  std::map<ibv_cq*, std::weak_ptr<CompletionSink>> sinks_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
