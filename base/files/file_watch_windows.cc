#include <windows.h>
// Behind windows.h, whose types it uses.
#include <winternl.h>

#include <algorithm>
#include <utility>

#include "base/files/file_watch.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "base/windows_status.h"

// CompareObjectHandles, which the library of the kernel's calls has under this name.
extern "C" NTSTATUS NTAPI NtCompareObjects(HANDLE first, HANDLE second);

namespace rnicd {
namespace {

// Whether the handle is the last one of its object, in all processes.
bool IsLast(HANDLE handle) {
  OBJECT_BASIC_INFORMATION facts;
  return NT_SUCCESS(NtQueryObject(handle, ObjectBasicInformation, &facts, sizeof(facts), nullptr)) &&
         facts.HandleCount <= 1;
}

// Windows does not report the end of a section, so the watch keeps a handle of each section and polls its handle count.
class HandleWatch final : public FileWatch {
 public:
  absl::StatusOr<Id> Add(int fd) override {
    HANDLE duplicate = nullptr;
    if (DuplicateHandle(GetCurrentProcess(), LongToHandle(fd), GetCurrentProcess(), &duplicate, 0, FALSE,
                        DUPLICATE_SAME_ACCESS) == 0) {
      return LastErrorStatus("DuplicateHandle");
    }
    UniqueFd handle(HandleToLong(duplicate));
    MutexLock lock(mutex_);
    const auto known = std::ranges::find_if(watched_, [duplicate](const Watched& watched) {
      return NT_SUCCESS(NtCompareObjects(LongToHandle(watched.handle.get()), duplicate));
    });
    if (known != watched_.end()) {
      return known->id;
    }
    watched_.push_back({.id = next_++, .handle = std::move(handle)});
    return watched_.back().id;
  }

  std::vector<Id> TakeEnded() override {
    std::vector<Id> ended;
    MutexLock lock(mutex_);
    std::erase_if(watched_, [&ended](const Watched& watched) {
      const bool last = IsLast(LongToHandle(watched.handle.get()));
      if (last) {
        ended.push_back(watched.id);
      }
      return last;
    });
    return ended;
  }

 private:
  struct Watched {
    Id id = 0;
    UniqueFd handle;
  };

  Mutex mutex_;
  Id next_ RNICD_GUARDED_BY(mutex_) = 1;
  std::vector<Watched> watched_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileWatch>> NewFileWatch() { return std::make_unique<HandleWatch>(); }

}  // namespace rnicd
