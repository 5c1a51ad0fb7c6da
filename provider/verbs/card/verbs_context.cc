#include "provider/verbs/card/verbs_context.h"

#include <cerrno>
#include <utility>

#include "base/status.h"
#include "provider/verbs/card/verbs_status.h"

namespace rnicd::provider {

absl::StatusOr<std::shared_ptr<VerbsContext>> VerbsContext::Open(std::shared_ptr<VerbsNode> node,
                                                                 std::shared_ptr<VerbsDevice> device, bool events) {
  RNICD_RETURN_IF_ERROR(device->CheckThere());
  std::shared_ptr<VerbsContext> context(new VerbsContext(std::move(node), std::move(device), events));
  RNICD_RETURN_IF_ERROR(context->OpenHandles());
  context->node_->loop.Add(context->context_->async_fd, context);
  context->node_->loop.Add(context->channel_->fd, context);
  return context;
}

absl::Status VerbsContext::OpenHandles() {
  context_ = api().Open(device_->card());
  if (context_ == nullptr) {
    return VerbStatus(errno, "ibv_open_device");
  }
  channel_ = api().CreateChannel(context_);
  return channel_ != nullptr ? absl::OkStatus() : VerbStatus(errno, "ibv_create_comp_channel");
}

VerbsContext::~VerbsContext() {
  if (channel_ != nullptr) {
    node_->loop.Remove(channel_->fd);
    api().DestroyChannel(channel_);
  }
  if (context_ != nullptr) {
    node_->loop.Remove(context_->async_fd);
    api().Close(context_);
  }
}

absl::StatusOr<ibv_cq*> VerbsContext::MakeQueue(uint32_t entries) {
  ibv_cq* const cq = api().CreateCq(context_, static_cast<int>(entries), channel_);
  if (cq == nullptr) {
    return VerbStatus(errno, "ibv_create_cq");
  }
  return cq;
}

absl::Status VerbsContext::ListenTo(ibv_cq* cq, const std::weak_ptr<CompletionSink>& sink) {
  // The map first: an event may come as soon as the queue is armed.
  {
    MutexLock lock(mutex_);
    sinks_[cq] = sink;
  }
  const int error = api().ArmCq(cq);
  return error == 0 ? absl::OkStatus() : VerbStatus(error, "ibv_req_notify_cq");
}

void VerbsContext::RemoveQueue(ibv_cq* cq) {
  {
    MutexLock lock(mutex_);
    sinks_.erase(cq);
  }
  api().DestroyCq(cq);
}

std::shared_ptr<CompletionSink> VerbsContext::FindSink(ibv_cq* cq) {
  MutexLock lock(mutex_);
  const auto found = sinks_.find(cq);
  return found != sinks_.end() ? found->second.lock() : nullptr;
}

std::vector<std::shared_ptr<CompletionSink>> VerbsContext::Sinks() {
  std::vector<std::shared_ptr<CompletionSink>> sinks;
  MutexLock lock(mutex_);
  for (const auto& [cq, weak] : sinks_) {
    if (std::shared_ptr<CompletionSink> sink = weak.lock(); sink != nullptr) {
      sinks.push_back(std::move(sink));
    }
  }
  return sinks;
}

bool VerbsContext::OnReadable(int descriptor) {
  if (descriptor == context_->async_fd) {
    return ReadAsyncEvents();
  }
  while (ibv_cq* const cq = api().NextCqEvent(channel_)) {
    // A queue that was destroyed meanwhile has no sink.
    if (const std::shared_ptr<CompletionSink> sink = FindSink(cq); sink != nullptr) {
      sink->OnCqEvent();
    }
  }
  // The channel of a removed card stays readable but delivers no event.
  return !device_->removed();
}

bool VerbsContext::ReadAsyncEvents() {
  ibv_async_event event = {};
  int error = 0;
  while ((error = api().NextAsyncEvent(context_, event)) == 0) {
    if (events_ || event.event_type == IBV_EVENT_DEVICE_FATAL) {
      device_->OnAsyncEvent(*node_, context_, event);
    }
    // An event may name a queue pair that has been destroyed, so every queue pair checks its own state.
    for (const std::shared_ptr<CompletionSink>& sink : Sinks()) {
      sink->OnCardEvent();
    }
  }
  return error == EAGAIN;
}

void VerbsContext::OnTick() {
  for (const std::shared_ptr<CompletionSink>& sink : Sinks()) {
    if (device_->removed()) {
      sink->OnDeviceRemoved();
    } else {
      sink->OnTick();
    }
  }
}

}  // namespace rnicd::provider
