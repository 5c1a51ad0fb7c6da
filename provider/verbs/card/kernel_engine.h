#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "provider/verbs/card/kernel_scratch.h"
#include "provider/verbs/card/pinned_pages.h"

namespace rnicd::provider {

class VerbsContext;

// Fast registrations by the kernel in one protection domain.
// Lifetime: shared by the domain and its regions; outlived by the protection domain.
class KernelEngine {
 public:
  // Takes the domain. Errors: those of ModuleStatus, and of VerbsDevice::CurrentAddress.
  static absl::StatusOr<std::shared_ptr<KernelEngine>> Take(VerbsContext& context, ibv_pd* pd);
  KernelEngine(std::shared_ptr<ModuleDomain> domain, std::shared_ptr<PinnedPages> pages)
      : domain_(std::move(domain)), pages_(std::move(pages)) {}
  KernelEngine(const KernelEngine&) = delete;
  KernelEngine& operator=(const KernelEngine&) = delete;
  ~KernelEngine() { pages_->Drop(*domain_); }

  FastModule& module() const { return domain_->module(); }
  int file() const { return domain_->file(); }
  uint32_t region_pages_max() const { return domain_->region_pages_max(); }
  absl::Status Pin(std::span<const std::span<std::byte>> runs, PinnedRuns& out) const {
    return pages_->Pin(domain_, runs, out);
  }
  // Keeps what a card may still reach until the module has released the domain.
  void Keep(std::shared_ptr<const void> stuck) RNICD_REQUIRES(mutex) { stuck_.push_back(std::move(stuck)); }

  // Empty but while requests are executed.
  KernelScratch scratch RNICD_GUARDED_BY(mutex);
  // Held while requests are executed, so it is the order of the domain's registrations. Taken before the domain's own.
  Mutex mutex;

 private:
  // Destroyed after the domain's file is closed.
  std::vector<std::shared_ptr<const void>> stuck_ RNICD_GUARDED_BY(mutex);
  const std::shared_ptr<ModuleDomain> domain_;
  const std::shared_ptr<PinnedPages> pages_;
};

}  // namespace rnicd::provider
