#include "daemon/door/entrance.h"

#include "daemon/core/tenant/observation.h"

namespace rnicd::door {

Entrance::Outcome Entrance::Admit(const std::string& owner) {
  std::shared_ptr<void> place = places_->Take(owner);
  if (place == nullptr) {
    return {.place = nullptr, .refusal = places_->IsFull() ? core::kRefusedLimit : core::kRefusedUidLimit};
  }
  if (rates_.IsTooFast(owner)) {
    return {.place = nullptr, .refusal = core::kRefusedRate};
  }
  return {.place = std::move(place), .refusal = {}};
}

}  // namespace rnicd::door
