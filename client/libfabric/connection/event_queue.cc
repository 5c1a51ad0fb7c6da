#include "client/libfabric/connection/event_queue.h"

#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "client/libfabric/waiting.h"

namespace rnicd::fi {

EventQueue::EventQueue(const fid_fabric* fabric, const fi_eq_attr& attr, void* context)
    : has_wait_object_(attr.wait_obj != FI_WAIT_NONE),
      takes_writes_((attr.flags & FI_WRITE) != 0),
      copies_error_data_(fabric != nullptr && FI_VERSION_GE(fabric->api_version, FI_VERSION(1, 5))),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      queued_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  static fi_ops fid_operations = FidOperations(Close, Unsupported, Control);
  static fi_ops_eq operations = {.size = sizeof(fi_ops_eq),
                                 .read = Read,
                                 .readerr = ReadError,
                                 .write = Write,
                                 .sread = WaitAndRead,
                                 .strerror = Text};
  handle_.api = {.fid = {.fclass = FI_CLASS_EQ, .context = context, .ops = &fid_operations}, .ops = &operations};
  handle_.object = this;
}

int EventQueue::Open(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context) {
  const fi_eq_attr chosen = attr == nullptr ? fi_eq_attr{} : *attr;
  if ((chosen.flags & ~uint64_t{FI_WRITE | FI_AFFINITY}) != 0) {
    return -FI_EINVAL;
  }
  if (!IsWaitObject(chosen.wait_obj)) {
    return -FI_ENOSYS;
  }
  auto* queue = new EventQueue(fabric, chosen, context);
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = ~uint64_t{0}}};
  if (!queue->epoll_.valid() || !queue->queued_.valid() ||
      epoll_ctl(queue->epoll_.get(), EPOLL_CTL_ADD, queue->queued_.get(), &event) != 0) {
    const int error = errno;
    delete queue;
    return -error;
  }
  *eq = &queue->handle_.api;
  return 0;
}

int EventQueue::Close(fid* eq) {
  EventQueue& queue = Of(eq);
  if (queue.bound_ != 0) {
    return -FI_EBUSY;
  }
  delete &queue;
  return 0;
}

bool EventQueue::SetEpoll(int operation, int fd, const WatchEntry& watch, uint32_t events) {
  epoll_event event = {.events = events, .data = {.u64 = uint64_t{watch.generation} << 32 | static_cast<uint32_t>(fd)}};
  return epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
}

int EventQueue::Watch(int fd, uint32_t events, Watched& watched) {
  const auto [found, is_new] = watches_.try_emplace(fd, WatchEntry{.watched = &watched, .events = 0, .generation = 0});
  if (is_new) {
    // The highest one belongs to queued_.
    generations_ = (generations_ + 1) & 0x7FFF'FFFF;
    found->second.generation = generations_;
  }
  found->second.watched = &watched;
  found->second.events = events;
  if (SetEpoll(is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, found->second, events)) {
    return 0;
  }
  const int error = errno;
  Unwatch(fd);
  return -error;
}

void EventQueue::Unwatch(int fd) {
  if (watches_.erase(fd) != 0) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }
  ResumePaused();
}

void EventQueue::Pause(int fd) {
  const auto found = watches_.find(fd);
  if (found != watches_.end() && SetEpoll(EPOLL_CTL_MOD, fd, found->second, 0)) {
    paused_.push_back(fd);
  }
}

void EventQueue::ResumePaused() {
  for (const int fd : std::exchange(paused_, {})) {
    const auto found = watches_.find(fd);
    if (found != watches_.end()) {
      SetEpoll(EPOLL_CTL_MOD, fd, found->second, found->second.events);
    }
  }
}

// One round: a peer that always has something to say must not keep the reader here.
void EventQueue::Progress() {
  MutexLock lock(connection_mutex_);
  {
    MutexLock events_lock(mutex_);
    std::ranges::for_each(events_, [](Event& event) { event.later = false; });
  }
  ResumePaused();
  std::array<epoll_event, 64> ready;
  const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int index = 0; index < count; ++index) {
    const epoll_event& event = ready[static_cast<size_t>(index)];
    // One of those before may have ended it.
    const auto found = watches_.find(static_cast<int>(static_cast<uint32_t>(event.data.u64)));
    if (found != watches_.end() && found->second.generation == event.data.u64 >> 32) {
      found->second.watched->OnReady();
    }
  }
}

int EventQueue::TryWait() {
  Progress();
  MutexLock lock(mutex_);
  return events_.empty() ? 0 : -FI_EAGAIN;
}

void EventQueue::Report(uint32_t event, fid& of, std::span<const std::byte> data, OwnedInfo info) {
  Add({.event = event, .of = &of, .info = std::move(info), .data = {data.begin(), data.end()}});
}

void EventQueue::ReportEnd(fid& of) {
  Add({.event = FI_SHUTDOWN, .of = &of, .later = true, .info = nullptr, .data = {}});
}

void EventQueue::ReportError(fid& of, int error, std::span<const std::byte> data) {
  Add({.error = error, .of = &of, .info = nullptr, .data = {data.begin(), data.end()}});
}

void EventQueue::Forget(fid& of) {
  MutexLock lock(mutex_);
  std::erase_if(events_, [&of](const Event& event) { return event.of == &of; });
  if (events_.empty()) {
    SetReadable(false);
  }
}

void EventQueue::Add(Event event) {
  MutexLock lock(mutex_);
  events_.push_back(std::move(event));
  SetReadable(true);
}

void EventQueue::DropFirst() {
  events_.pop_front();
  if (events_.empty()) {
    SetReadable(false);
  }
}

void EventQueue::SetReadable(bool readable) {
  eventfd_t count = 1;
  readable ? eventfd_write(queued_.get(), count) : eventfd_read(queued_.get(), &count);
}

}  // namespace rnicd::fi
