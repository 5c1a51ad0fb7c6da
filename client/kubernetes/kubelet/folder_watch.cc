#include "client/kubernetes/kubelet/folder_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace rnicd::kubernetes {
namespace {

constexpr uint32_t kChanges = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF;
// Events after which the watch no longer works.
constexpr uint32_t kFolderRemoved = IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT;
constexpr std::chrono::milliseconds kLongestWait{3'600'000};

}  // namespace

FolderWatch::FolderWatch(std::string folder)
    : folder_(std::move(folder)),
      events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

bool FolderWatch::Follow() {
  if (watch_ < 0 && events_.valid()) {
    watch_ = inotify_add_watch(events_.get(), folder_.c_str(), kChanges | IN_ONLYDIR);
  }
  return watch_ >= 0;
}

void FolderWatch::Wait(std::chrono::milliseconds timeout) {
  // poll skips descriptors below 0.
  std::array<pollfd, 2> sources{pollfd{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = events_.get(), .events = POLLIN, .revents = 0}};
  const auto limit = std::clamp(timeout, std::chrono::milliseconds(0), kLongestWait);
  if (poll(sources.data(), sources.size(), static_cast<int>(limit.count())) <= 0) {
    return;
  }
  if (sources[0].revents != 0) {
    eventfd_t ignored = 0;
    eventfd_read(wake_.get(), &ignored);
  }
  if (sources[1].revents != 0) {
    while (ReadEvents()) {
    }
  }
}

void FolderWatch::Wake() const { eventfd_write(wake_.get(), 1); }

// Returns false when no events are left. Which file changed does not matter: callers of Wait check all of them.
bool FolderWatch::ReadEvents() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  const ssize_t size = read(events_.get(), buffer.data(), buffer.size());
  if (size <= 0) {
    return false;
  }
  for (size_t at = 0; at < static_cast<size_t>(size);) {
    inotify_event event;
    std::memcpy(&event, buffer.data() + at, sizeof(event));
    if (event.wd == watch_ && (event.mask & kFolderRemoved) != 0) {
      RemoveWatch();
    }
    at += sizeof(event) + event.len;
  }
  return true;
}

void FolderWatch::RemoveWatch() {
  // Fails when the kernel has already removed it.
  inotify_rm_watch(events_.get(), watch_);
  watch_ = -1;
}

}  // namespace rnicd::kubernetes
