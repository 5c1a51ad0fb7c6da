#pragma once

#include <memory>
#include <utility>

#include "provider/api/queue_pair.h"
#include "provider/soft/soft_key_holder.h"
#include "provider/soft/soft_nic.h"
#include "provider/soft/soft_region_memory.h"

namespace rnicd::provider {

class SpareBlock;
// Leaves the block to the objects in it.
struct SpareBlockLeaver {
  void operator()(SpareBlock* spare) const;
};

// Keys that reach memory from the execution of a FastRegisterWork until its invalidation, and reach nothing otherwise.
// Threads: safe. Executions on different queue pairs are serialized.
class SoftFastRegion final : public DeviceFastRegion, public std::enable_shared_from_this<SoftFastRegion> {
 public:
  // Errors: DEVICE_OUT_OF_RESOURCES.
  static absl::StatusOr<std::shared_ptr<SoftFastRegion>> Create(std::shared_ptr<SoftNic> nic, uint64_t domain);
  ~SoftFastRegion() override;

  LocalToken local_token() const override { return holder_.local_token(); }
  RemoteToken remote_token() const override { return holder_.remote_token(); }
  bool registered() const override { return holder_.has_target(); }
  void Retire() override { holder_.Retire(); }

  // Issues the token of a request that was just accepted.
  RemoteToken IssueToken() { return holder_.IssueToken(); }
  // False when the region is already registered or retired.
  bool Register(FastRegisterWork& work, RemoteToken token);
  // Returns when transfers no longer reach the pages. False when the region is not registered or, if `only` is not
  // null, when the registration is not `only`.
  bool Invalidate(const SoftRegionMemory* only = nullptr) { return holder_.Invalidate(only); }

 private:
  SoftFastRegion(std::shared_ptr<SoftNic> nic, uint64_t domain, SoftKeyTable::Keys keys);

  const uint64_t domain_;
  // Memory of an earlier registration, for the next.
  const std::unique_ptr<SpareBlock, SpareBlockLeaver> spare_;
  SoftKeyHolder<SoftRegionMemory> holder_;
};

}  // namespace rnicd::provider
