#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "provider/verbs/card/kernel_engine.h"
#include "provider/verbs/card/pinned_pages.h"
#include "provider/verbs/fast/verbs_fast_region.h"

namespace rnicd::provider {

// A registration that the kernel will make when its request is executed.
struct KernelRegistration {
  // Complete but for first_run.
  rnicd_fr_op op = {};
  uint32_t token = 0;
  AccessRights rights;
  PinnedRuns pinned;
};

// A fast region whose registrations are requests of the kernel (IB_WR_REG_MR), through the module rnicd_fr. The module
// has two kernel registrations for it, slots, which are used in turn: the card may still read the page list of one
// while the next is filled. The low byte of a slot's key is chosen here, so the token is known before it is in force,
// and returns after 512 registrations at the earliest.
// Threads: safe. Executions in one domain are serialized.
class KernelFastRegion final : public VerbsFastRegion,
                               public Invalidatable,
                               public std::enable_shared_from_this<KernelFastRegion> {
 public:
  // Errors: those of Registration::Make and ModuleStatus.
  static absl::StatusOr<std::shared_ptr<KernelFastRegion>> Create(std::shared_ptr<VerbsDomain> domain,
                                                                  uint32_t max_pages);
  ~KernelFastRegion() override;

  LocalToken local_token() const override { return LocalToken{placeholder_->lkey()}; }
  RemoteToken remote_token() const override { return RemoteToken{issued_.load(std::memory_order_relaxed)}; }
  bool registered() const override { return registered_.load(std::memory_order_relaxed); }
  void Retire() override;

  absl::Status Prepare(const FastRegisterWork& work, PreparedRequest& prepared) override;
  void Issue(RemoteToken token) override { issued_.store(token.value, std::memory_order_relaxed); }
  bool Invalidate() override;
  bool is_kernel() const override { return true; }
  bool InvalidateToken(uint32_t token, std::optional<uint64_t> arrived_at) override;

 private:
  friend class KernelChain;
  // What is in force, or will be after the chain in progress.
  struct Current {
    uint32_t slot = 0;
    uint32_t key = 0;
    uint32_t token = 0;
    // Destroyed after the pins.
    std::shared_ptr<const void> backing;
    PinnedRuns pinned;
  };

  KernelFastRegion(std::shared_ptr<VerbsDomain> domain, std::unique_ptr<Registration> placeholder, uint32_t max_pages);
  // Makes the module's region if there is none. Errors: those of ModuleStatus.
  absl::Status MakeRegion() RNICD_REQUIRES(mutex_);
  uint32_t number() RNICD_EXCLUDES(mutex_);
  // True if the slot of the module's region still has the key of the token.
  bool HasKey(uint32_t number, uint32_t slot, uint32_t token) RNICD_EXCLUDES(mutex_);
  // Ends the module's region, and with it all registrations. False when the module refused.
  bool DestroyRegion();
  // The module has given the slot another key; 0: the region is dead.
  void NoteKey(uint32_t slot, uint32_t key);

  const std::shared_ptr<VerbsDomain> domain_;
  const std::shared_ptr<KernelEngine> engine_;
  const std::unique_ptr<Registration> placeholder_;
  const uint32_t max_pages_;
  std::atomic<uint32_t> issued_;
  std::atomic<bool> registered_ = false;

  Mutex mutex_;
  // The module's number; 0: none, the next registration makes one.
  uint32_t number_ RNICD_GUARDED_BY(mutex_) = 0;
  std::array<uint32_t, RNICD_FR_SLOTS> keys_ RNICD_GUARDED_BY(mutex_) = {};
  std::array<uint8_t, RNICD_FR_SLOTS> next_byte_ RNICD_GUARDED_BY(mutex_) = {};
  uint32_t next_slot_ RNICD_GUARDED_BY(mutex_) = 0;

  // Guarded by engine_->mutex, which KernelChain holds; it is the only one that uses these.
  std::optional<Current> current_;
  // Slots that the chain in progress invalidates: the next chain may use them again.
  std::array<bool, RNICD_FR_SLOTS> ending_ = {};
  bool retired_ = false;
};

}  // namespace rnicd::provider
