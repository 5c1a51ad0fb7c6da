#include "client/libfabric/memory.h"

#include <rdma/fi_errno.h>
#include <sys/mman.h>

#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "client/libfabric/domain.h"
#include "client/libfabric/errors.h"
#include "client/libfabric/handle.h"
#include "client/libfabric/provider.h"

namespace rnicd::fi {

struct Memory::Region {
  Handle<fid_mr, Region> handle;
  Memory* owner = nullptr;
  std::shared_ptr<Pages> pages;
  rnicd_mr* mr = nullptr;
  uint32_t local_token = 0;
};

namespace {

constexpr uint64_t kRemoteAccess = FI_REMOTE_READ | FI_REMOTE_WRITE;

struct Right {
  uint64_t access;
  uint32_t right;
};
constexpr std::array<Right, 4> kRights = {{{FI_RECV, RNICD_MR_LOCAL_WRITE},
                                           {FI_READ, RNICD_MR_LOCAL_WRITE | RNICD_MR_READ_SINK},
                                           {FI_REMOTE_READ, RNICD_MR_REMOTE_READ},
                                           {FI_REMOTE_WRITE, RNICD_MR_REMOTE_WRITE}}};

uint32_t RightsOf(uint64_t access) {
  uint32_t rights = 0;
  for (const Right& right : kRights) {
    rights |= (access & right.access) != 0 ? right.right : 0;
  }
  return rights;
}

}  // namespace

namespace {

// The pages that the daemon populates count against the tenant's rate of calls, also where sealing them is refused
// then: ranks that try again at once, as RxM does, would never get below the rate.
int ReplaceAtTheTenantsRate(rnicd_session* session, void* address, size_t bytes, rnicd_memory** memory) {
  constexpr std::chrono::milliseconds kFirst{100};
  constexpr std::chrono::milliseconds kLongest{6400};
  for (std::chrono::milliseconds wait = kFirst;; wait *= 2) {
    const int result = rnicd_replace_memory(session, address, bytes, memory);
    if (result >= 0 || rnicd_last_error()->reason != RNICD_REASON_RATE_LIMITED || wait > kLongest) {
      return result;
    }
    std::this_thread::sleep_for(wait);
  }
}

}  // namespace

int Memory::FindOrReplace(const PageRange& wanted, std::shared_ptr<Pages>* pages) {
  for (auto entry = replaced_.begin(); entry != replaced_.end();) {
    const std::shared_ptr<Pages> known = entry->second.lock();
    const bool overlaps = known != nullptr && known->range.Overlaps(wanted);
    if (known == nullptr || (overlaps && !known->AreInPlace())) {
      entry = replaced_.erase(entry);
      continue;
    }
    if (known->range.Contains(wanted)) {
      *pages = known;
      return 0;
    }
    if (overlaps) {
      RNICD_FI_WARN(FI_LOG_MR, "the buffer overlaps a region that begins or ends inside of it: close that first\n");
      return -FI_EOPNOTSUPP;
    }
    ++entry;
  }
  return Replace(wanted, pages);
}

int Memory::Replace(const PageRange& wanted, std::shared_ptr<Pages>* pages) {
  auto made = std::make_shared<Pages>();
  made->range = wanted;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* const address = reinterpret_cast<void*>(wanted.begin);
  const int result = ReplaceAtTheTenantsRate(domain_.session(), address, wanted.bytes(), &made->memory);
  if (result < 0) {
    return Refused(FI_LOG_MR, "replacing the buffer's pages", result == -EINVAL ? -FI_EOPNOTSUPP : result);
  }
  made->file = FileUnder(wanted);
  // Makes two mappings of it, which mremap refuses together: realloc would stretch one beyond the end of the daemon's
  // file, where nothing is, but copies now.
  madvise(address, PageRange::kPageBytes, MADV_DODUMP);
  replaced_[wanted.begin] = made;
  *pages = std::move(made);
  return 0;
}

int Memory::Register(const void* buffer, size_t bytes, uint64_t access, void* context, fid_mr** region) {
  const PageRange range = OwnedPages(buffer, bytes);
  if (range.empty()) {
    RNICD_FI_WARN(
        FI_LOG_MR,
        "%zu bytes at %p share a page with something else. Registered are whole pages, and blocks of malloc or "
        "MPI_Alloc_mem that are mappings of their own: most above 128 KiB, and with "
        "LD_PRELOAD=librnicd-heap.so all from 512 bytes on\n",
        bytes, buffer);
    return -FI_EOPNOTSUPP;
  }
  // Until after a failure has given the pages back.
  MutexLock lock(mutex_);
  auto made = std::make_unique<Region>();
  if (const int result = FindOrReplace(range, &made->pages); result < 0) {
    return result;
  }
  const uint64_t offset = reinterpret_cast<uintptr_t>(buffer) - made->pages->range.begin;
  int result = rnicd_register_mr(made->pages->memory, offset, bytes, RightsOf(access), &made->mr);
  if (result < 0) {
    return Refused(FI_LOG_MR, "registering the buffer", result);
  }
  auto info = RNICD_INIT(rnicd_mr_info);
  rnicd_query_mr(made->mr, &info);
  made->owner = this;
  made->local_token = info.local_token;
  static fi_ops operations = FidOperations(Close);
  made->handle.api = {.fid = {.fclass = FI_CLASS_MR, .context = context, .ops = &operations},
                      .mem_desc = made.get(),
                      .key = (access & kRemoteAccess) != 0 ? info.remote_token : FI_KEY_NOTAVAIL};
  made->handle.object = made.get();
  ++regions_;
  *region = &made.release()->handle.api;
  return 0;
}

int Memory::Close(fid* region) {
  const std::unique_ptr<Region> closed(&ObjectOf<fid_mr, Region>(region));
  MutexLock lock(closed->owner->mutex_);
  --closed->owner->regions_;
  // The handle is gone in every case: a daemon that has died, too, has ended the region.
  if (const int result = rnicd_close_mr(closed->mr); result < 0) {
    Refused(FI_LOG_MR, "ending a region", result);
  }
  // With the last region of these pages the program gets its own back: under the lock, so that nobody replaces them
  // meanwhile.
  closed->pages.reset();
  return 0;
}

bool Memory::Empty() {
  MutexLock lock(mutex_);
  return regions_ == 0;
}

uint32_t Memory::LocalToken(const void* descriptor) {
  return descriptor != nullptr ? static_cast<const Region*>(descriptor)->local_token : 0;
}

namespace {

// Flags that providers of libfabric pass to each other, as hints on caches.
constexpr uint64_t kInternalFlags = ~uint64_t{0} << 60;

int RegisterAttributes(fid* domain, const fi_mr_attr* attributes, uint64_t flags, fid_mr** region) {
  if ((flags & ~kInternalFlags) != 0 || attributes == nullptr || attributes->iov_count != 1 ||
      attributes->iface != FI_HMEM_SYSTEM) {
    return -FI_EINVAL;
  }
  return Domain::Of(domain).memory().Register(attributes->mr_iov[0].iov_base, attributes->mr_iov[0].iov_len,
                                              attributes->access, attributes->context, region);
}

int RegisterVector(fid* domain, const iovec* buffers, size_t count, uint64_t access, uint64_t /*offset*/,
                   uint64_t /*requested_key*/, uint64_t flags, fid_mr** region, void* context) {
  if ((flags & ~kInternalFlags) != 0 || buffers == nullptr || count != 1) {
    return -FI_EINVAL;
  }
  return Domain::Of(domain).memory().Register(buffers[0].iov_base, buffers[0].iov_len, access, context, region);
}

int RegisterBuffer(fid* domain, const void* buffer, size_t bytes, uint64_t access, uint64_t offset,
                   uint64_t requested_key, uint64_t flags, fid_mr** region, void* context) {
  const iovec whole = {const_cast<void*>(buffer), bytes};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  return RegisterVector(domain, &whole, 1, access, offset, requested_key, flags, region, context);
}

}  // namespace

fi_ops_mr& MemoryOperations() {
  static fi_ops_mr operations = {
      .size = sizeof(fi_ops_mr), .reg = RegisterBuffer, .regv = RegisterVector, .regattr = RegisterAttributes};
  return operations;
}

}  // namespace rnicd::fi
