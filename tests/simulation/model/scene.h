#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/core/session/session.h"
#include "tests/simulation/model/card.h"
#include "tests/simulation/model/model.h"
#include "tests/simulation/model/trace.h"
#include "tests/simulation/world/findings.h"
#include "tests/simulation/world/world.h"

namespace rnicd::simulation {

// Everything a step needs: the actual state, the expected state and the source of decisions.
struct Scene {
  World& world;
  const EpisodeOptions& options;
  Model& model;
  Card& card;
  Mailbox& mailbox;
  Dice& dice;
  Trace& trace;
  Findings& findings;

  // True if the next choice is to be wrong on purpose.
  bool Careless() const { return dice.Chance(options.carelessness); }
};

// All figures of a session that can be observed without changing it, by name.
using Fingerprint = std::vector<std::pair<std::string_view, uint64_t>>;
Fingerprint TakeFingerprint(const Scene& scene, const Client& client);

// One call of a session's client; a step of the trace.
class Call {
 public:
  // `what`: the call and its arguments, for the trace.
  Call(Scene& scene, Client& client, const std::string& what);

  // False if the session refuses calls; it must then be ending.
  bool admitted() const { return guard_.has_value(); }
  // The session of an admitted call.
  const core::SessionGuard& session() const { return *guard_; }
  // Checks the outcome against the model. True if the call was accepted and had to be.
  bool Accepted(const absl::Status& status, const Refusals& why);
  // Same for a request that may pend: it must pend if and only if `must_pend`.
  template <typename T>
  bool Accepted(const core::MaybePending<T>& begun, const Refusals& why, bool must_pend) {
    return Accepted(begun.status(), why) && Pends(begun.pending(), must_pend);
  }

 private:
  void CheckRefusalChangesNothing();
  bool Pends(bool pends, bool must_pend);

  Scene& scene_;
  Client& client_;
  Fingerprint before_;
  std::optional<core::SessionGuard> guard_;
};

// A memory object of a session that is not ending.
absl::StatusOr<std::shared_ptr<core::MemoryObject>> FindObject(const Client& client, MemoryObjectId id);

// Randomly drawn way to report the end of a request, for the model and for core.
struct ReportPlan {
  Report report;
  core::PendingChoice choice;
};
ReportPlan DrawReportPlan(Scene& scene, core::RequestKind kind, uint64_t object_id, core::Resource charge);

// "mr7", or "mr?1f" for an id that names no object.
template <typename T>
std::string Name(const char* kind, const std::shared_ptr<T>& object, uint64_t id) {
  return kind + (object != nullptr ? std::to_string(object->number) : "?" + std::to_string(id));
}

template <typename T>
std::shared_ptr<T> FindById(const std::vector<std::shared_ptr<T>>& list, decltype(T::id) id) {
  for (const std::shared_ptr<T>& each : list) {
    if (each->id == id) {
      return each;
    }
  }
  return nullptr;
}
// A region's id becomes invalid when its close begins; a memory object's id is valid from its allocation on.
inline std::shared_ptr<Region> FindRegion(const Client& client, MemoryRegionId id) {
  std::shared_ptr<Region> region = FindById(client.regions, id);
  return region != nullptr && !region->closing.begun ? region : nullptr;
}
inline std::shared_ptr<Memory> FindMemory(const Client& client, MemoryObjectId id) {
  std::shared_ptr<Memory> memory = FindById(client.memories, id);
  return memory != nullptr && memory->state != Memory::State::kAllocating ? memory : nullptr;
}

// The id of one of the client's objects; if careless, or if it has none, an id that is dead, foreign or random.
template <typename T>
decltype(T::id) PickId(const Scene& scene, const Client& client, std::vector<std::shared_ptr<T>> Client::* list) {
  Dice& dice = scene.dice;
  const std::vector<std::shared_ptr<T>>& own = client.*list;
  if (!own.empty() && !scene.Careless()) {
    return dice.Pick(own)->id;
  }
  const std::vector<std::shared_ptr<T>>& foreign = *dice.Pick(scene.model.clients).*list;
  const uint64_t choice = dice.Below(4);
  if (choice == 0 && !client.dead_ids.empty()) {
    return {dice.Pick(client.dead_ids)};
  }
  if (choice <= 2 && !foreign.empty()) {
    return dice.Pick(foreign)->id;
  }
  return {dice.Next()};
}

// Same, with a preference for an object that `fits`.
template <typename T, typename Fits>
decltype(T::id) PickFitting(const Scene& scene, const Client& client, std::vector<std::shared_ptr<T>> Client::* list,
                            const Fits& fits) {
  std::vector<std::shared_ptr<T>> fitting;
  for (const std::shared_ptr<T>& each : client.*list) {
    if (fits(*each)) {
      fitting.push_back(each);
    }
  }
  return fitting.empty() || scene.Careless() ? PickId(scene, client, list) : scene.dice.Pick(fitting)->id;
}
inline bool IsOpen(const Adapter& adapter) { return !adapter.closing.begun; }
inline bool IsOpen(const Domain& domain) { return !domain.closing.begun; }

}  // namespace rnicd::simulation
