#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errno_status.h"
#include "base/files/file_watch.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"

namespace rnicd {
namespace {

constexpr size_t kBytesAtOnce = 16 << 10;

class InotifyWatch final : public FileWatch {
 public:
  explicit InotifyWatch(UniqueFd events) : events_(std::move(events)) {}

  absl::StatusOr<Id> Add(int fd) override {
    MutexLock lock(mutex_);
    const Id id = inotify_add_watch(events_.get(), absl::StrCat("/proc/self/fd/", fd).c_str(), IN_DELETE_SELF);
    if (id < 0) {
      return ErrnoStatus("inotify_add_watch", errno);
    }
    watched_.insert(id);
    return id;
  }

  std::vector<Id> TakeEnded() override {
    MutexLock lock(mutex_);
    std::vector<Id> ended;
    alignas(inotify_event) std::array<char, kBytesAtOnce> buffer;
    for (ssize_t size = 0; (size = read(events_.get(), buffer.data(), buffer.size())) > 0;) {
      for (size_t at = 0; at < static_cast<size_t>(size);) {
        inotify_event event;
        std::memcpy(&event, buffer.data() + at, sizeof(event));
        at += sizeof(event) + event.len;
        Take(event, ended);
      }
    }
    return ended;
  }

 private:
  void Take(const inotify_event& event, std::vector<Id>& ended) RNICD_REQUIRES(mutex_) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) {
      TakeLost(ended);
    } else if ((event.mask & IN_DELETE_SELF) != 0 && watched_.erase(event.wd) != 0) {
      ended.push_back(event.wd);
    }
  }

  // The kernel drops reports above fs.inotify.max_queued_events. A file whose watch the kernel does not list any more
  // has ended.
  void TakeLost(std::vector<Id>& ended) RNICD_REQUIRES(mutex_) {
    std::set<Id> left;
    std::ifstream list(absl::StrCat("/proc/self/fdinfo/", events_.get()));
    for (std::string line; std::getline(list, line);) {
      unsigned id = 0;
      if (std::sscanf(line.c_str(), "inotify wd:%x", &id) == 1) {
        left.insert(static_cast<Id>(id));
      }
    }
    if (!list.eof()) {
      return;  // The list could not be read: assume that no file has ended.
    }
    std::erase_if(watched_, [&](Id id) {
      const bool has_ended = !left.contains(id);
      if (has_ended) {
        ended.push_back(id);
      }
      return has_ended;
    });
  }

  Mutex mutex_;
  const UniqueFd events_;
  std::set<Id> watched_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileWatch>> NewFileWatch() {
  UniqueFd events(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!events.valid()) {
    return ErrnoStatus("inotify_init1", errno);
  }
  return std::make_unique<InotifyWatch>(std::move(events));
}

}  // namespace rnicd
