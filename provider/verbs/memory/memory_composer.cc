#include "provider/verbs/memory/memory_composer.h"

#include <sys/mman.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/errno_status.h"
#include "base/status.h"
#include "provider/engine/byte_runs.h"

namespace rnicd::provider {
namespace {

using Bytes = std::span<std::byte>;

// Bits of an address of a process.
#if defined(__aarch64__)
constexpr unsigned kAddressBits = 48;
#else
constexpr unsigned kAddressBits = 47;
#endif

// The whole pages around a run.
Bytes PagesAround(Bytes run, uint64_t page_bytes) {
  const size_t before = reinterpret_cast<uintptr_t>(run.data()) % page_bytes;
  const size_t bytes = before + run.size();
  return {run.data() - before, (bytes + page_bytes - 1) / page_bytes * page_bytes};
}

bool IsAligned(const std::byte* address, uint64_t page_bytes) {
  return reinterpret_cast<uintptr_t>(address) % page_bytes == 0;
}

// True when all pages are known to lie in one kernel mapping.
// Growing a range in place to the size of the whole address space always fails, with ENOMEM. Before that check the
// kernel verifies that the range is within one mapping and returns EFAULT if it is not. Other errors prove nothing.
// Source: mremap(2), EFAULT.
bool IsOneMapping(Bytes pages, uint64_t page_bytes) {
  const size_t address_space = (size_t{1} << kAddressBits) - page_bytes;
  return pages.size() == page_bytes ||
         (mremap(pages.data(), pages.size(), address_space, 0) == MAP_FAILED && (errno == ENOMEM || errno == EAGAIN));
}

// Returns 0 or an errno. The second copy of a mapping continues in the file past the end of the mapping, regardless of
// the neighbour in memory: pages of two adjacent mappings must be copied separately, or a peer would get access to
// foreign pages.
int CopyMapping(Bytes pages, std::byte* target, uint64_t page_bytes) {
  if (!IsOneMapping(pages, page_bytes)) {
    const size_t half = pages.size() / 2 / page_bytes * page_bytes;
    const int error = CopyMapping(pages.first(half), target, page_bytes);
    return error != 0 ? error : CopyMapping(pages.subspan(half), target + half, page_bytes);
  }
  return mremap(pages.data(), 0, pages.size(), MREMAP_MAYMOVE | MREMAP_FIXED, target) == MAP_FAILED ? errno : 0;
}

void* Reserve(size_t bytes) {
  return mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// Room around this address where nothing is, or MAP_FAILED.
void* ReserveAround(const std::byte* at, size_t bytes, uint64_t page_bytes) {
  const uint64_t place = reinterpret_cast<uint64_t>(at) / page_bytes * page_bytes;
  return mmap(reinterpret_cast<void*>(place), bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

// Room that begins at a page, or MAP_FAILED. A kernel gives no other; but tests name larger pages than their kernel's.
void* ReserveAtPage(size_t bytes, uint64_t page_bytes) {
  void* const room = Reserve(bytes);
  if (room == MAP_FAILED || IsAligned(static_cast<std::byte*>(room), page_bytes)) {
    return room;
  }
  munmap(room, bytes);
  void* const wider = Reserve(bytes + page_bytes);
  if (wider == MAP_FAILED) {
    return wider;
  }
  const size_t before = page_bytes - reinterpret_cast<uintptr_t>(wider) % page_bytes;
  auto* const begin = static_cast<std::byte*>(wider) + before;
  munmap(wider, before);
  munmap(begin + bytes, page_bytes - before);
  return begin;
}

absl::Status CopyFailure(int error) {
  return MakeErrorWithDetail(error == ENOMEM ? ErrorReason::DEVICE_OUT_OF_RESOURCES : ErrorReason::DEVICE_NOT_CAPABLE,
                             ErrnoDetail("mremap", error));
}

}  // namespace

ComposedView::ComposedView(ComposedView&& other) noexcept
    : pages_(std::exchange(other.pages_, {})), bytes_(std::exchange(other.bytes_, {})) {}

ComposedView& ComposedView::operator=(ComposedView&& other) noexcept {
  if (this != &other) {
    Unmap();
    pages_ = std::exchange(other.pages_, {});
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

ComposedView::~ComposedView() { Unmap(); }

void ComposedView::Unmap() {
  if (!pages_.empty()) {
    munmap(pages_.data(), pages_.size());
  }
  pages_ = {};
  bytes_ = {};
}

absl::StatusOr<ComposedView> Compose(std::span<const Bytes> runs, uint64_t page_bytes, const std::byte* at) {
  const std::vector<Bytes> joined = JoinRuns(runs);
  ComposedView view;
  if (joined.empty()) {
    return view;
  }
  size_t bytes = 0;
  size_t room_bytes = 0;
  for (size_t index = 0; index < joined.size(); ++index) {
    const Bytes run = joined[index];
    const bool begins_well = index == 0 || IsAligned(run.data(), page_bytes);
    const bool ends_well = index + 1 == joined.size() || IsAligned(run.data() + run.size(), page_bytes);
    if (!begins_well || !ends_well) {
      return MakeErrorWithDetail(ErrorReason::INTERNAL_FAULT, "a seam between runs lies inside a page");
    }
    bytes += run.size();
    room_bytes += PagesAround(run, page_bytes).size();
  }
  void* const room = at != nullptr ? ReserveAround(at, room_bytes, page_bytes) : ReserveAtPage(room_bytes, page_bytes);
  if (room == MAP_FAILED) {
    return CopyFailure(errno);
  }
  view.pages_ = {static_cast<std::byte*>(room), room_bytes};
  std::byte* target = view.pages_.data();
  for (const Bytes run : joined) {
    const Bytes pages = PagesAround(run, page_bytes);
    if (const int error = CopyMapping(pages, target, page_bytes); error != 0) {
      return CopyFailure(error);
    }
    target += pages.size();
  }
  view.bytes_ = view.pages_.subspan(
      static_cast<size_t>(joined.front().data() - PagesAround(joined.front(), page_bytes).data()), bytes);
  // One call for all pages instead of one fault per page. If it fails, the registration faults them in or fails itself.
  madvise(view.pages_.data(), view.pages_.size(), MADV_POPULATE_WRITE);
  return view;
}

}  // namespace rnicd::provider
