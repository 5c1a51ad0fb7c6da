#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/node.h"
#include "daemon/core/session.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/mailbox.h"
#include "tests/simulation/manual.h"
#include "tests/simulation/objects.h"

namespace rnicd::simulation {

// How much of each resource somebody holds.
using Usage = std::array<uint64_t, core::kResourceCount>;

// A completion that waits to be fetched.
struct DueCompletion {
  core::RequestKind kind = core::RequestKind::kRegisterMr;
  uint64_t request_context = 0;
  uint64_t object_id = 0;
  Refusals why;
  std::optional<core::Registration> registration;
  std::optional<core::Resource> charge;
};

// A session and everything it owns: nothing of the model is owned by anybody else.
struct Tenant {
  uint64_t number = 0;
  std::shared_ptr<core::Session> session;
  core::Caller caller;
  std::shared_ptr<ManualProcess> process;
  uint32_t connections = 1;
  bool ending = false;
  core::EndCause cause = core::EndCause::kClosed;
  // Everything was taken back.
  bool over = false;
  std::vector<uint64_t> end_callbacks;
  // Jobs on workers that hold its end off.
  uint64_t jobs = 0;
  // Of these, the ones that are charged.
  uint64_t slow_requests = 0;

  std::vector<std::shared_ptr<Adapter>> adapters;
  std::vector<std::shared_ptr<Domain>> domains;
  std::vector<std::shared_ptr<Memory>> memories;
  std::vector<std::shared_ptr<Region>> regions;
  std::vector<std::shared_ptr<Mapping>> mappings;
  std::vector<std::shared_ptr<CompletionQueue>> completion_queues;
  std::vector<std::shared_ptr<QueuePair>> queue_pairs;
  std::vector<std::shared_ptr<Window>> windows;
  // Every pages object and every backing made, as long as anybody holds it.
  std::vector<std::weak_ptr<const MappedPages>> pages;
  std::vector<std::weak_ptr<const Backing>> backings;

  std::vector<DueCompletion> completions;
  bool ending_event_due = false;
  uint64_t next_sequence = 1;

  // What named something once: ids of any kind, tokens of either.
  std::vector<uint64_t> dead_ids;
  std::vector<uint32_t> dead_tokens;
};

// A ticket that was issued and neither used nor revoked.
struct Ticket {
  core::FdTicket bits{};
  Tenant* tenant = nullptr;
  MemoryObjectId memory;
  core::FdDirection direction = core::FdDirection::kToClient;
  Instant expiry;
};

// A job that core left for later, and what the model says it does.
struct Task {
  std::string what;
  Tenant* tenant = nullptr;
  std::function<void()> apply;
};

// What there must be.
class Model {
 public:
  // All of it outlives the model.
  Model(const core::NodeLimits& node_limits, Faults& planned_faults, Mailbox& callbacks)
      : limits(node_limits), faults(planned_faults), mailbox(callbacks) {}

  const core::NodeLimits& limits;
  Faults& faults;
  Mailbox& mailbox;

  std::vector<std::unique_ptr<Nic>> nics;
  // Those that are over stay until their events are fetched.
  std::vector<std::shared_ptr<Tenant>> tenants;
  std::vector<Ticket> tickets;
  // In the order in which they were posted.
  std::vector<Task> worker_tasks;
  std::vector<Task> reaper_tasks;
  // Every queue pair of the model by number, those that were closed in this step too.
  std::vector<std::shared_ptr<QueuePair>> queue_pairs;

  uint64_t NextNumber() { return ++last_number_; }

  // What its own ledger must say.
  Usage UsageOf(const Tenant& tenant) const;
  // What the node's ledger must say.
  Usage UsageOfNode() const;
  // Adds the resource's reason when nobody would let the tenant have so much more.
  void JudgeQuota(const Tenant& tenant, core::Resource resource, uint64_t amount, Refusals& why) const;
  bool IsSlow(uint64_t bytes) const { return bytes >= limits.pending_threshold_bytes; }

  // A job that holds the tenant's session was posted.
  void PostToWorker(Tenant& tenant, std::string what, std::function<void()> apply);
  // A pending request came to its end.
  void Complete(Tenant& tenant, const Report& report, Refusals why,
                const std::optional<core::Registration>& registration = std::nullopt);

  // Ends the registration of a region.
  void Deregister(Tenant& tenant, Region& region);
  // Takes the queue pair, whose requests have completed, away.
  void RemoveQueuePair(Tenant& tenant, QueuePair& pair);
  void RemoveWindow(Tenant& tenant, Window& window);
  // Finishes every close that nothing holds up any more. Answers how many regions the card did not deregister.
  uint64_t Settle(Tenant& tenant);
  // Closes of parents wait for their children.
  static bool IsHeld(const Tenant& tenant, const Adapter& adapter);
  static bool IsHeld(const Tenant& tenant, const Domain& domain);
  static bool IsHeld(const Tenant& tenant, const CompletionQueue& queue);
  static bool IsHeld(const Tenant& tenant, const Region& region);

  // The order in which a session goes through its objects: by the index in their ids.
  template <typename T>
  static void SortByIndex(std::vector<std::shared_ptr<T>>& objects) {
    std::sort(objects.begin(), objects.end(), [](const auto& one, const auto& other) {
      return static_cast<uint32_t>(one->id.value) < static_cast<uint32_t>(other->id.value);
    });
  }

  static void Bury(Tenant& tenant, uint64_t id);
  static void BuryToken(Tenant& tenant, uint32_t token);

 private:
  Usage UsageOfUid(uid_t uid) const;
  uint64_t FinishRegion(Tenant& tenant, Region& region);
  void FinishClose(Tenant& tenant, const Closing& closing, uint64_t id);

  uint64_t last_number_ = 0;
};

}  // namespace rnicd::simulation
