#pragma once

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "provider/verbs/card/fast_module.h"
#include "provider/verbs/fake/verbs_fake.h"

namespace rnicd::provider {

// The kernel module over a fake card, by the rules of rnicd_fr.h. Its registrations are keys of the card.
// Lifetime: outlives its users, outlived by the card.
// Threads:  safe.
class FakeFastModule final : public FastModule {
 public:
  explicit FakeFastModule(FakeVerbs& card, uint32_t region_pages_max = 512)
      : card_(card), region_pages_max_(region_pages_max) {}

  int Take(ibv_pd* pd, uint8_t port, uint8_t gid_index, rnicd_fr_take& out) override;
  void Close(int domain) override;
  int Map(int domain, std::span<std::byte> pages, uint32_t& mapping) override;
  int Unmap(int domain, uint32_t mapping) override;
  int CreateRegion(int domain, uint32_t pages, rnicd_fr_create_region& region) override;
  int DestroyRegion(int domain, uint32_t region) override;
  int Submit(int domain, std::span<rnicd_fr_op> ops, std::span<const rnicd_fr_run> runs) override;

  // The call of this name ("Map") after `skip` more fails with `error`, once, and has no effect.
  void FailNext(const std::string& call, int error, uint64_t skip = 0);
  // The card refuses the operation with this index of the next chain.
  void RefuseNext(size_t index);

  // --- What a test can see ---
  struct InForce {
    uint32_t token = 0;
    uint64_t base = 0;
    uint64_t length = 0;
    uint32_t access = 0;
    std::vector<std::byte*> pages;
  };
  std::vector<InForce> in_force() const;
  size_t domains() const;
  size_t regions() const;
  size_t mappings() const;
  uint64_t mapped_pages() const;
  // Operations of each chain since the last ForgetChains.
  std::vector<size_t> chains() const;
  void ForgetChains();

 private:
  struct Mapping {
    std::span<std::byte> bytes;
    int uses = 0;
  };
  struct Slot {
    uint32_t key = 0;
    std::optional<InForce> live;
    std::vector<uint32_t> holds;
  };
  struct Region {
    uint32_t pages = 0;
    Slot slots[RNICD_FR_SLOTS];
  };
  struct Domain {
    ibv_pd* pd = nullptr;
    std::map<uint32_t, Mapping> mappings;
    std::map<uint32_t, Region> regions;
  };

  int TakeFault(const std::string& call) RNICD_REQUIRES(mutex_);
  Domain* Find(int domain) RNICD_REQUIRES(mutex_);
  int Check(Domain& domain, const rnicd_fr_op& op, std::span<const rnicd_fr_run> runs, const std::vector<Slot*>& ending,
            InForce& made, std::vector<uint32_t>& holds) RNICD_REQUIRES(mutex_);
  int Execute(Domain& domain, const rnicd_fr_op& op, std::span<const rnicd_fr_run> runs, std::vector<Slot*>& ending)
      RNICD_REQUIRES(mutex_);
  void End(Domain& domain, Slot& slot) RNICD_REQUIRES(mutex_);
  void Break(Domain& domain, Region& region) RNICD_REQUIRES(mutex_);

  FakeVerbs& card_;
  const uint32_t region_pages_max_;
  mutable Mutex mutex_;
  std::map<int, Domain> domains_ RNICD_GUARDED_BY(mutex_);
  std::map<std::string, std::pair<int, uint64_t>> faults_ RNICD_GUARDED_BY(mutex_);
  std::optional<size_t> refused_ RNICD_GUARDED_BY(mutex_);
  std::vector<size_t> chains_ RNICD_GUARDED_BY(mutex_);
  int next_file_ RNICD_GUARDED_BY(mutex_) = 100;
  uint32_t next_id_ RNICD_GUARDED_BY(mutex_) = 1;
  uint32_t next_key_ RNICD_GUARDED_BY(mutex_) = 0x40;
};

}  // namespace rnicd::provider
