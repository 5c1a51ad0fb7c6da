#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ntstatus.h"
#include "provider/engine/engine_card.h"
#include "provider/verbs/card/kernel_scratch.h"
#include "provider/verbs/fast/kernel_fast_region.h"

namespace rnicd::provider {

// Registrations and invalidations of one domain that the kernel executes in one call, in order.
//
// A request is added by taking its effect on the region at once, so that the next one sees it; what the card then did
// not do is taken back. An invalidation that fails for any reason ends with the region's kernel registrations: what is
// released afterwards is never in reach of a card.
// Threads: one. Errors of the card: STATUS_INTERNAL_ERROR; a removed card: STATUS_CANCELLED.
class KernelChain {
 public:
  explicit KernelChain(KernelEngine& engine) : engine_(engine) {}
  KernelChain(const KernelChain&) = delete;
  KernelChain& operator=(const KernelChain&) = delete;

  // The requests are fast registrations of kernel regions and invalidations of fast regions. Executes as many of them,
  // from the first, as one call takes, and fills their results; the others are blocked. The first is never blocked.
  void Execute(std::span<EngineRequest* const> requests, std::span<BeginResult> results);
  // Ends what is in force of the region; with `token`, only what has it as its remote or local token. False when there
  // is nothing. `retire`: nothing will be in force again.
  bool End(KernelFastRegion& region, std::optional<uint32_t> token, bool retire);

 private:
  using Step = KernelScratch::Step;

  // Fills the results of the requests from the steps, which are the first of them.
  void Report(std::span<BeginResult> results) const RNICD_REQUIRES(engine_.mutex);
  bool Add(EngineRequest& request) RNICD_REQUIRES(engine_.mutex);
  bool AddRegistration(KernelFastRegion& region, KernelRegistration& registration, std::shared_ptr<const void>& backing)
      RNICD_REQUIRES(engine_.mutex);
  bool AddInvalidation(KernelFastRegion& region) RNICD_REQUIRES(engine_.mutex);
  // Sends the call, and settles each step and its error.
  void Run() RNICD_REQUIRES(engine_.mutex);
  void SettleRegistration(const Step& step, int error) RNICD_REQUIRES(engine_.mutex);
  // Ends all registrations of the region, because nothing else is known to have ended this one.
  void DestroyFor(const Step& step) RNICD_REQUIRES(engine_.mutex);

  KernelEngine& engine_;
  // What was in force and is no longer. Released without the lock.
  std::vector<KernelFastRegion::Current> ended_;
};

}  // namespace rnicd::provider
