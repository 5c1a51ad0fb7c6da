#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "daemon/core/generation/inheritance.h"
#include "daemon/core/tenant/ledger.h"
#include "daemon/core/tenant/tenant.h"

namespace rnicd::core {

// What one owner may hold in a retired daemon, and whether that is too much or too little. The newer generation counts
// at least `told` as foreign use, at every moment: what grows is charged there first, what shrinks is told afterwards.
// Threads: one at a time.
class Share {
 public:
  // `of`: who it is. `tenant` is null for the node. Caps the ledger, which the owner may use meanwhile, but has no new
  // sessions.
  Share(HeldUse of, std::shared_ptr<Ledger> ledger, std::shared_ptr<Tenant> tenant);

  // Whether it is the share of the same owner.
  bool IsOf(const HeldUse& use) const { return use.grant == of_.grant && use.tenant == of_.tenant; }
  // What the newer generation is to count: what is in force, and what was asked for and may be granted already.
  HeldUse told() const;
  struct Moves {
    bool shrunk = false;
    bool wanted = false;
  };
  // Adapts the share to what the owner holds. Call it about every 200 ms.
  Moves Review();
  // The answer to what was wanted.
  void Grant(const HeldUse& lease);
  // Lifts the caps.
  void Lift();
  // Nothing is held here any more, and that has been told.
  bool over() const;

 private:
  void Review(Resource resource, bool fell, bool may_ask, Moves& moves);
  void FollowUse(Resource resource, bool may_ask, Moves& moves);
  void Ask(Resource resource, uint64_t most, Moves& moves);
  bool waits() const;
  // Whether the owner can come to hold more of it here.
  bool Grows(Resource resource) const;
  // How much more than it holds the owner is to have here.
  uint64_t SpareOf(Resource resource) const;

  // `held` is what is in force.
  HeldUse of_;
  std::shared_ptr<Ledger> ledger_;
  // Keeps the directory from forgetting it.
  std::shared_ptr<Tenant> tenant_;
  // What was asked for and has no answer; 0 if nothing.
  std::array<uint64_t, kResourceCount> asked_{};
  // Reviews in which there was much too much.
  std::array<uint32_t, kResourceCount> idle_{};
  uint64_t sessions_ = 0;
};

}  // namespace rnicd::core
