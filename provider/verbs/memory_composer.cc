#include "provider/verbs/memory_composer.h"

#include <sys/mman.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/errno_status.h"
#include "base/status.h"
#include "base/units.h"

namespace rnicd::provider {
namespace {

using Bytes = std::span<std::byte>;

// The whole pages around a run.
Bytes PagesAround(Bytes run) {
  const size_t before = reinterpret_cast<uintptr_t>(run.data()) % kNdkPageBytes;
  const size_t bytes = before + run.size();
  return {run.data() - before, (bytes + kNdkPageBytes - 1) / kNdkPageBytes * kNdkPageBytes};
}

bool IsAligned(const std::byte* address) { return reinterpret_cast<uintptr_t>(address) % kNdkPageBytes == 0; }

// True when all pages are known to lie in one kernel mapping.
// Growing a range in place to the size of the whole address space always fails, with ENOMEM. Before that check the
// kernel verifies that the range is within one mapping and returns EFAULT if it is not. Other errors prove nothing.
// Source: mremap(2), EFAULT.
bool IsOneMapping(Bytes pages) {
  constexpr size_t kAddressSpace = (size_t{1} << 47) - kNdkPageBytes;
  return pages.size() == kNdkPageBytes ||
         (mremap(pages.data(), pages.size(), kAddressSpace, 0) == MAP_FAILED && (errno == ENOMEM || errno == EAGAIN));
}

// Returns 0 or an errno. The second copy of a mapping continues in the file past the end of the mapping, regardless of
// the neighbour in memory: pages of two adjacent mappings must be copied separately, or a peer would get access to
// foreign pages.
int CopyMapping(Bytes pages, std::byte* target) {
  if (!IsOneMapping(pages)) {
    const size_t half = pages.size() / 2 / kNdkPageBytes * kNdkPageBytes;
    const int error = CopyMapping(pages.first(half), target);
    return error != 0 ? error : CopyMapping(pages.subspan(half), target + half);
  }
  return mremap(pages.data(), 0, pages.size(), MREMAP_MAYMOVE | MREMAP_FIXED, target) == MAP_FAILED ? errno : 0;
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

std::vector<Bytes> JoinRuns(std::span<const Bytes> runs) {
  std::vector<Bytes> joined;
  for (const Bytes run : runs) {
    if (run.empty()) {
      continue;
    }
    if (!joined.empty() && joined.back().data() + joined.back().size() == run.data()) {
      joined.back() = {joined.back().data(), joined.back().size() + run.size()};
    } else {
      joined.push_back(run);
    }
  }
  return joined;
}

absl::StatusOr<ComposedView> Compose(std::span<const Bytes> runs) {
  const std::vector<Bytes> joined = JoinRuns(runs);
  ComposedView view;
  if (joined.empty()) {
    return view;
  }
  size_t bytes = 0;
  size_t page_bytes = 0;
  for (size_t index = 0; index < joined.size(); ++index) {
    const Bytes run = joined[index];
    const bool begins_well = index == 0 || IsAligned(run.data());
    const bool ends_well = index + 1 == joined.size() || IsAligned(run.data() + run.size());
    if (!begins_well || !ends_well) {
      return MakeErrorWithDetail(ErrorReason::INTERNAL_FAULT, "a seam between runs lies inside a page");
    }
    bytes += run.size();
    page_bytes += PagesAround(run).size();
  }
  void* const room = mmap(nullptr, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    return CopyFailure(errno);
  }
  view.pages_ = {static_cast<std::byte*>(room), page_bytes};
  std::byte* target = view.pages_.data();
  for (const Bytes run : joined) {
    const Bytes pages = PagesAround(run);
    if (const int error = CopyMapping(pages, target); error != 0) {
      return CopyFailure(error);
    }
    target += pages.size();
  }
  view.bytes_ =
      view.pages_.subspan(static_cast<size_t>(joined.front().data() - PagesAround(joined.front()).data()), bytes);
  // One call for all pages instead of one fault per page. If it fails, the registration faults them in or fails itself.
  madvise(view.pages_.data(), view.pages_.size(), MADV_POPULATE_WRITE);
  return view;
}

}  // namespace rnicd::provider
