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
#include "tests/simulation/tenants.h"

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
struct Client {
  uint64_t number = 0;
  std::shared_ptr<core::Session> session;
  core::Caller caller;
  std::shared_ptr<Tenant> tenant;
  // Of this session alone, from its opening on.
  core::Limits limits;
  Bucket rate{core::Rate{}};
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
  Client* client = nullptr;
  MemoryObjectId memory;
  core::FdDirection direction = core::FdDirection::kToClient;
  Instant expiry;
};

// A job that core left for later, and what the model says it does.
struct Task {
  std::string what;
  Client* client = nullptr;
  std::function<void()> apply;
};

// What there must be.
class Model {
 public:
  // All of it outlives the model.
  Model(const core::NodeLimits& node_limits, core::Policy policy, Faults& planned_faults, Mailbox& callbacks)
      : limits(node_limits), faults(planned_faults), mailbox(callbacks), tenants(std::move(policy)) {}

  const core::NodeLimits& limits;
  Faults& faults;
  Mailbox& mailbox;

  Tenants tenants;
  // Nothing is taken on.
  bool draining = false;
  // What must be told of in this step, in order.
  std::vector<std::string> decisions;
  // What secrets were good for once, and core's own tenants, as long as anybody holds them.
  std::vector<std::string> dead_secrets;
  std::vector<std::weak_ptr<const core::Tenant>> seen;

  std::vector<std::unique_ptr<Nic>> nics;
  // Those that are over stay until their events are fetched.
  std::vector<std::shared_ptr<Client>> clients;
  std::vector<Ticket> tickets;
  // In the order in which they were posted.
  std::vector<Task> worker_tasks;
  std::vector<Task> reaper_tasks;
  // Every queue pair of the model by number, those that were closed in this step too.
  std::vector<std::shared_ptr<QueuePair>> queue_pairs;

  uint64_t NextNumber() { return ++last_number_; }

  // What the ledgers must say. A page counts once for each session and once for each tenant that has it registered.
  Usage UsageOf(const Client& client) const;
  Usage UsageOf(const Tenant& tenant) const;
  Usage UsageOfNode() const;
  FilePages PinnedBy(const Client& client) const;
  // Adds the resource's reason for each who would not let the client have so much more.
  void CheckQuota(const Client& client, core::Resource resource, uint64_t amount, Refusals& why) const;
  // Likewise for pages to be registered, each as often as it is named.
  void CheckPins(const Client& client, const std::vector<FilePage>& pages, Refusals& why) const;
  // Likewise for one more session.
  void CheckSession(const Tenant& tenant, Refusals& why) const;
  bool IsSlow(uint64_t bytes) const { return bytes >= limits.pending_threshold_bytes; }

  // A job that holds the client's session was posted.
  void PostToWorker(Client& client, std::string what, std::function<void()> apply);
  // A pending request came to its end.
  void Complete(Client& client, const Report& report, Refusals why,
                const std::optional<core::Registration>& registration = std::nullopt);

  // Ends the registration of a region.
  void Deregister(Client& client, Region& region);
  // Takes the queue pair, whose requests have completed, away.
  void RemoveQueuePair(Client& client, QueuePair& pair);
  void RemoveWindow(Client& client, Window& window);
  // Finishes every close that nothing holds up any more. Answers how many regions the card did not deregister.
  uint64_t Settle(Client& client);
  // Closes of parents wait for their children.
  static bool IsHeld(const Client& client, const Adapter& adapter);
  static bool IsHeld(const Client& client, const Domain& domain);
  static bool IsHeld(const Client& client, const CompletionQueue& queue);
  static bool IsHeld(const Client& client, const Region& region);

  // The order in which a session goes through its objects: by the index in their ids.
  template <typename T>
  static void SortByIndex(std::vector<std::shared_ptr<T>>& objects) {
    std::sort(objects.begin(), objects.end(), [](const auto& one, const auto& other) {
      return static_cast<uint32_t>(one->id.value) < static_cast<uint32_t>(other->id.value);
    });
  }

  static void Bury(Client& client, uint64_t id);
  static void BuryToken(Client& client, uint32_t token);

 private:
  // What is registered, each page as often as it is.
  std::vector<FilePage> Registered(const Client& client) const;
  FilePages PinnedBy(const Tenant& tenant) const;
  uint64_t FinishRegion(Client& client, Region& region);
  void FinishClose(Client& client, const Closing& closing, uint64_t id);

  uint64_t last_number_ = 0;
};

}  // namespace rnicd::simulation
