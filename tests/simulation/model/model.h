#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/request/node.h"
#include "daemon/core/session/session.h"
#include "tests/simulation/model/mailbox.h"
#include "tests/simulation/model/objects.h"
#include "tests/simulation/model/tenants.h"
#include "tests/simulation/world/faults.h"
#include "tests/simulation/world/manual.h"
#include "tests/simulation/world/shared_path.h"

namespace rnicd::simulation {

// Amount of each resource that an owner holds.
using Usage = std::array<uint64_t, core::kResourceCount>;

// A completion to be fetched.
struct DueCompletion {
  core::RequestKind kind = core::RequestKind::kRegisterMr;
  uint64_t request_context = 0;
  uint64_t object_id = 0;
  Refusals why;
  std::optional<Registration> registration;
  std::optional<core::Resource> charge;
};

// A session and everything it owns: every object of the model belongs to one session.
struct Client {
  uint64_t number = 0;
  std::shared_ptr<core::Session> session;
  core::Caller caller;
  std::shared_ptr<Tenant> tenant;
  // Limits of this session, fixed when it was opened.
  core::Limits limits;
  Bucket rate{core::Rate{}};
  std::shared_ptr<ManualProcess> process;
  uint32_t connections = 1;
  bool ending = false;
  core::EndCause cause = core::EndCause::kClosed;
  // True once everything is reclaimed.
  bool over = false;
  std::vector<uint64_t> end_callbacks;
  // Jobs that delay the end of the session: those of workers, and the one that cancels them.
  uint64_t jobs = 0;
  // The number of worker jobs that are charged.
  uint64_t slow_requests = 0;
  // Whether it opens a ring, and has mapped completion queues.
  bool uses_rings = false;
  // Its requests go through this ring while it has one.
  std::unique_ptr<RingUser> ring;

  std::vector<std::shared_ptr<Adapter>> adapters;
  std::vector<std::shared_ptr<Domain>> domains;
  std::vector<std::shared_ptr<Memory>> memories;
  std::vector<std::shared_ptr<Region>> regions;
  std::vector<std::shared_ptr<Mapping>> mappings;
  std::vector<std::shared_ptr<CompletionQueue>> completion_queues;
  std::vector<std::shared_ptr<QueuePair>> queue_pairs;
  std::vector<std::shared_ptr<Window>> windows;
  // Every MappedPages and Backing made, while referenced.
  std::vector<std::weak_ptr<const MappedPages>> pages;
  std::vector<std::weak_ptr<const Backing>> backings;

  std::vector<DueCompletion> completions;
  bool ending_event_due = false;
  uint64_t next_sequence = 1;

  // Ids and tokens that are no longer valid.
  std::vector<uint64_t> dead_ids;
  std::vector<uint32_t> dead_tokens;
};

// The refusal of every queued job of a session that is ending.
inline Refusals Cancelled(const Client& client) {
  Refusals why;
  why.If(client.ending, ErrorReason::SESSION_ENDING);
  return why;
}

// A ticket that was issued, not used and not revoked.
struct Ticket {
  core::FdTicket bits{};
  Client* client = nullptr;
  MemoryObjectId memory;
  core::FdDirection direction = core::FdDirection::kToClient;
  Instant expiry;
};

// A job that core queued, and its effect on the model.
struct Task {
  std::string what;
  Client* client = nullptr;
  std::function<void()> apply;
};

// The expected state of core.
class Model {
 public:
  // The limits, the faults and the mailbox must outlive the model.
  Model(const core::NodeLimits& node_limits, core::Policy policy, Faults& planned_faults, Mailbox& callbacks)
      : limits(node_limits), faults(planned_faults), mailbox(callbacks), tenants(std::move(policy)) {}

  const core::NodeLimits& limits;
  Faults& faults;
  Mailbox& mailbox;

  Tenants tenants;
  // True while no new sessions are accepted.
  bool draining = false;
  // Decisions that must be reported in this step, in order.
  std::vector<std::string> decisions;
  // Secrets of former grants, and core's tenants while referenced.
  std::vector<std::string> dead_secrets;
  std::vector<std::weak_ptr<const core::Tenant>> seen;

  std::vector<std::unique_ptr<Nic>> nics;
  // All sessions; an ended one stays until its events are fetched.
  std::vector<std::shared_ptr<Client>> clients;
  std::vector<Ticket> tickets;
  // Queued jobs in posting order.
  std::vector<Task> worker_tasks;
  std::vector<Task> reaper_tasks;
  // Every queue pair of the model by number, including those closed in this step.
  std::vector<std::shared_ptr<QueuePair>> queue_pairs;

  uint64_t NextNumber() { return ++last_number_; }

  // Expected ledger figures. A page counts once for each session and once for each tenant that has it registered.
  static Usage UsageOf(const Client& client);
  // Heap bytes of the lists whose length the client chooses, and of the memory that it shares with the daemon.
  static uint64_t ListsOf(const Client& client);
  Usage UsageOf(const Tenant& tenant) const;
  Usage UsageOfNode() const;
  static FilePages PinnedBy(const Client& client);
  // Adds the resource's reason for each limit (session, tenant, node) that has less than `amount` left, and that of the
  // heap bytes that it costs.
  void CheckQuota(const Client& client, core::Resource resource, uint64_t amount, Refusals& why) const;
  // Same for the heap bytes of all that one request is charged, and of its lists.
  using Amounts = std::initializer_list<std::pair<core::Resource, uint64_t>>;
  void CheckHeap(const Client& client, const Amounts& amounts, uint64_t lists, Refusals& why) const;
  // Same for pages to be registered, each counted as often as it is named.
  void CheckPins(const Client& client, const std::vector<FilePage>& pages, Refusals& why) const;
  // Same for one more session.
  void CheckSession(const Tenant& tenant, Refusals& why) const;
  bool IsSlow(uint64_t bytes) const { return bytes >= limits.pending_threshold_bytes; }

  // Records a queued worker job that holds the client's session.
  void PostToWorker(Client& client, std::string what, std::function<void()> apply);
  // Completes a pending request.
  void Complete(Client& client, const Report& report, Refusals why,
                const std::optional<Registration>& registration = std::nullopt);

  // Ends the registration of a region.
  void Deregister(Client& client, Region& region);
  // Removes a queue pair whose requests have completed.
  void RemoveQueuePair(Client& client, QueuePair& pair);
  void RemoveWindow(Client& client, Window& window);
  // Finishes every close that is no longer blocked. Returns how many regions the card failed to deregister.
  uint64_t Settle(Client& client);
  // The close of a parent waits for its children.
  static bool IsHeld(const Client& client, const Adapter& adapter);
  static bool IsHeld(const Client& client, const Domain& domain);
  static bool IsHeld(const Client& client, const CompletionQueue& queue);
  static bool IsHeld(const Client& client, const Region& region);

  // Sorts objects in the session's order: by the index in their ids.
  template <typename T>
  static void SortByIndex(std::vector<std::shared_ptr<T>>& objects) {
    std::sort(objects.begin(), objects.end(), [](const auto& one, const auto& other) {
      return static_cast<uint32_t>(one->id.value) < static_cast<uint32_t>(other->id.value);
    });
  }

  // Revokes the ticket of a memory object, if it is still valid.
  void RevokeTicket(const Client& client, MemoryObjectId memory);
  static void Bury(Client& client, uint64_t id);
  static void BuryToken(Client& client, uint32_t token);

 private:
  // Adds the registered pages, each as often as it is registered.
  static void AddRegistered(const Client& client, std::vector<FilePage>& registered);
  FilePages PinnedBy(const Tenant& tenant) const;
  uint64_t FinishRegion(Client& client, Region& region);
  void FinishClose(Client& client, const Closing& closing, uint64_t id);

  uint64_t last_number_ = 0;
};

}  // namespace rnicd::simulation
