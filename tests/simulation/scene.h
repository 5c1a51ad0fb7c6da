#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/core/session.h"
#include "tests/simulation/card.h"
#include "tests/simulation/findings.h"
#include "tests/simulation/model.h"
#include "tests/simulation/trace.h"
#include "tests/simulation/world.h"

namespace rnicd::simulation {

// All that a step needs: what is, what should be, and who decides.
struct Scene {
  World& world;
  const EpisodeOptions& options;
  Model& model;
  Card& card;
  Mailbox& mailbox;
  Dice& dice;
  Trace& trace;
  Findings& findings;

  // Whether the next choice is wrong on purpose.
  bool Careless() const { return dice.Chance(options.carelessness); }
};

// Everything about a session that can be seen from outside without changing it, each figure with its name.
using Fingerprint = std::vector<std::pair<std::string_view, uint64_t>>;
Fingerprint TakeFingerprint(const Scene& scene, const Client& client);

// One call of a session's client. It is a step of the trace.
class Call {
 public:
  // `what`: the call and its arguments, for people.
  Call(Scene& scene, Client& client, const std::string& what);

  // False when the session takes no calls any more; then it must be ending.
  bool admitted() const { return guard_.has_value(); }
  // Checks the outcome against the model. True when the call was accepted, as it had to be.
  bool Accepted(const absl::Status& status, const Refusals& why);
  // Likewise for a request that may pend: it must pend exactly when the model says so.
  bool Accepted(const absl::StatusOr<core::Progress>& progress, const Refusals& why, bool must_pend);

 private:
  void CheckRefusalChangesNothing();

  Scene& scene_;
  Client& client_;
  Fingerprint before_;
  std::optional<core::Session::Guard> guard_;
};

// How the end of a request is to be told, drawn by lot, and what to give to core for it.
struct ReportPlan {
  Report report;
  core::PendingChoice choice;
};
ReportPlan DrawReportPlan(Scene& scene, core::RequestKind kind, uint64_t object_id, core::Resource charge);

// "mr7", or "mr?1f" for an id that names nothing.
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
// The id of a region dies when its close begins, that of memory lives from its allocation on.
inline std::shared_ptr<Region> FindRegion(const Client& client, MemoryRegionId id) {
  std::shared_ptr<Region> region = FindById(client.regions, id);
  return region != nullptr && !region->closing.begun ? region : nullptr;
}
inline std::shared_ptr<Memory> FindMemory(const Client& client, MemoryObjectId id) {
  std::shared_ptr<Memory> memory = FindById(client.memories, id);
  return memory != nullptr && memory->state != Memory::State::kAllocating ? memory : nullptr;
}

// The id of one of the client's objects; when careless, or when there is none, one that is dead, foreign or made up.
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

// Likewise, and of the client's objects one that fits, if there is any.
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
