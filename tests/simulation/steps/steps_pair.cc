// Queue pairs: creating, connecting and closing them.

#include <algorithm>
#include <string>

#include "daemon/core/queue/queue_pair.h"
#include "tests/simulation/steps/closing.h"
#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

using core::Resource;
using provider::QueuePairState;

// Depths and sizes small enough to be hit.
provider::QueuePairLimits DrawLimits(const Scene& scene, bool& above_adapter) {
  Dice& dice = scene.dice;
  provider::QueuePairLimits limits;
  limits.receive_depth = static_cast<uint32_t>(dice.Between(2, 12));
  limits.initiator_depth = static_cast<uint32_t>(dice.Between(2, 12));
  limits.receive_entries = static_cast<uint32_t>(dice.Between(1, 3));
  limits.initiator_entries = static_cast<uint32_t>(dice.Between(1, 3));
  limits.inline_bytes = static_cast<uint32_t>(dice.Below(64));
  above_adapter = scene.Careless();
  if (above_adapter) {
    uint32_t* const fields[] = {&limits.receive_depth, &limits.initiator_depth, &limits.receive_entries,
                                &limits.initiator_entries, &limits.inline_bytes};
    *fields[dice.Below(5)] = 100000;
  }
  return limits;
}

Refusals CheckCreateQp(const Scene& scene, const Client& client, const std::shared_ptr<Domain>& domain,
                       const std::shared_ptr<CompletionQueue>& receive_queue,
                       const std::shared_ptr<CompletionQueue>& initiator_queue) {
  Refusals why;
  why.If(domain == nullptr || receive_queue == nullptr || initiator_queue == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(domain != nullptr && domain->closing.begun, ErrorReason::OBJECT_CLOSING);
  for (const std::shared_ptr<CompletionQueue>& queue : {receive_queue, initiator_queue}) {
    if (queue != nullptr) {
      why.If(queue->closing.begun, ErrorReason::OBJECT_CLOSING);
      why.If(queue->overrun, ErrorReason::CQ_OVERRUN);
      why.If(domain != nullptr && queue->adapter != domain->adapter, ErrorReason::ADAPTER_MISMATCH);
    }
  }
  scene.model.CheckQuota(client, Resource::kQueuePairs, 1, why);
  return why;
}

// Usually a queue of the domain's adapter.
CompletionQueueId PickQueue(const Scene& scene, const Client& client, const std::shared_ptr<Domain>& domain) {
  std::vector<CompletionQueueId> fitting;
  for (const auto& queue : client.completion_queues) {
    if (domain != nullptr && queue->adapter == domain->adapter && !queue->overrun && !queue->closing.begun) {
      fitting.push_back(queue->id);
    }
  }
  return fitting.empty() || scene.Careless() ? PickId(scene, client, &Client::completion_queues)
                                             : scene.dice.Pick(fitting);
}

void CreateQp(Scene& scene, Client& client) {
  const ProtectionDomainId id =
      PickFitting(scene, client, &Client::domains, [](const Domain& each) { return IsOpen(each); });
  const std::shared_ptr<Domain> domain = FindById(client.domains, id);
  const CompletionQueueId receive_id = PickQueue(scene, client, domain);
  const CompletionQueueId initiator_id = PickQueue(scene, client, domain);
  const auto receive_queue = FindById(client.completion_queues, receive_id);
  const auto initiator_queue = FindById(client.completion_queues, initiator_id);
  bool above_adapter = false;
  const provider::QueuePairLimits limits = DrawLimits(scene, above_adapter);
  const uint64_t context = scene.dice.Below(1000);
  Call call(scene, client,
            "CreateQp in " + Name("pd", domain, id.value) + " to " + Name("cq", receive_queue, receive_id.value) +
                " and " + Name("cq", initiator_queue, initiator_id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why = CheckCreateQp(scene, client, domain, receive_queue, initiator_queue);
  why.If(above_adapter, ErrorReason::ABOVE_ADAPTER_LIMIT);
  const uint64_t entries = uint64_t{limits.receive_depth} + limits.initiator_depth;
  scene.model.CheckQuota(client, Resource::kQueueEntries, entries, why);
  scene.model.CheckHeap(client, {{Resource::kQueuePairs, 1}, {Resource::kQueueEntries, entries}},
                        core::QueuePair::HeapOfLists(limits), why);
  if (why.none()) {
    (void)scene.model.faults.Strikes(Fault::kCreateQueuePair, why);
  }
  const auto made = call.session().pairs().Create({.domain = id,
                                                   .receive_queue = receive_id,
                                                   .initiator_queue = initiator_id,
                                                   .context = context,
                                                   .limits = limits});
  if (!call.Accepted(made.status(), why)) {
    return;
  }
  auto pair = std::make_shared<QueuePair>();
  pair->number = scene.world.witness.pairs_made;
  pair->id = *made;
  pair->client = &client;
  pair->domain = domain;
  pair->receive_queue = receive_queue;
  pair->initiator_queue = initiator_queue;
  pair->limits = limits;
  pair->context = context;
  const auto view = call.session().pairs().Query(*made);
  pair->address = view.ok() ? view->address : "";
  scene.trace.Add(" qp" + std::to_string(pair->number));
  scene.model.queue_pairs.push_back(pair);
  client.queue_pairs.push_back(std::move(pair));
}

void QueryQp(Scene& scene, Client& client) {
  const QueuePairId id = PickId(scene, client, &Client::queue_pairs);
  const std::shared_ptr<QueuePair> pair = FindById(client.queue_pairs, id);
  Call call(scene, client, "QueryQp " + Name("qp", pair, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(pair == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  const auto view = call.session().pairs().Query(id);
  if (call.Accepted(view.status(), why) && (view->state != pair->shown_state() || view->address != pair->address)) {
    scene.findings.Report("CallsAreJudgedByTheRules", "the state of qp" + std::to_string(pair->number) + " is " +
                                                          std::to_string(static_cast<int>(view->state)));
  }
}

bool IsFresh(const QueuePair& pair) { return pair.shown_state() == QueuePairState::kInit; }
bool IsBroken(const QueuePair& pair) { return pair.shown_state() == QueuePairState::kError; }

// Picks a peer: a queue pair that waits for this one, if any; otherwise one that none waits for, possibly this one.
std::shared_ptr<QueuePair> PickPeer(const Scene& scene, const QueuePair& pair) {
  std::vector<std::shared_ptr<QueuePair>> waiting;
  std::vector<std::shared_ptr<QueuePair>> free;
  for (const std::shared_ptr<QueuePair>& each : scene.model.queue_pairs) {
    if (each->peer_number == pair.number && !IsBroken(*each)) {
      waiting.push_back(each);
    }
    if (IsFresh(*each) && each->early_visitors.empty()) {
      free.push_back(each);
    }
  }
  if (!waiting.empty() && !scene.dice.Chance(5)) {
    return scene.dice.Pick(waiting);
  }
  return !free.empty() && !scene.Careless() ? scene.dice.Pick(free) : scene.dice.Pick(scene.model.queue_pairs);
}

// True if another queue pair waits for it to connect.
bool IsAwaited(const QueuePair& pair) { return IsFresh(pair) && !pair.early_visitors.empty(); }

bool HasAwaited(const Client& client) {
  return std::any_of(client.queue_pairs.begin(), client.queue_pairs.end(),
                     [](const auto& pair) { return IsAwaited(*pair); });
}

void ConnectQp(Scene& scene, Client& client) {
  const QueuePairId id = HasAwaited(client) ? PickFitting(scene, client, &Client::queue_pairs, IsAwaited)
                                            : PickFitting(scene, client, &Client::queue_pairs, IsFresh);
  const std::shared_ptr<QueuePair> pair = FindById(client.queue_pairs, id);
  std::shared_ptr<QueuePair> peer = pair != nullptr ? PickPeer(scene, *pair) : nullptr;
  std::string address = peer != nullptr ? peer->address : "nobody";
  if (scene.Careless()) {
    address.back() = static_cast<char>(~address.back());
    peer = nullptr;
  }
  Call call(scene, client, "ConnectQp " + Name("qp", pair, id.value) + " to " + Name("qp", peer, 0));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(pair == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(pair != nullptr && pair->state != QueuePairState::kInit, ErrorReason::QP_NOT_CONNECTABLE);
  why.If(peer == nullptr, ErrorReason::QP_ADDRESS_UNKNOWN);
  if (pair != nullptr && peer != nullptr && peer->client->tenant != client.tenant) {
    const bool is_permitted = !client.tenant->limits.connections.connect.empty();
    why.If(!is_permitted, ErrorReason::ADDRESS_NOT_PERMITTED);
    const absl::Status decision =
        is_permitted ? absl::OkStatus() : MakeError(ErrorReason::ADDRESS_NOT_PERMITTED, "peer_address");
    scene.model.decisions.push_back(TextOf(core::Decision{
        .what = "connection.pair",
        .caller = &client.caller,
        .tenant = client.tenant->name,
        .session = client.session->id(),
        .object = "peer=198.18.0." + std::to_string(peer->domain->adapter->nic == scene.model.nics[0].get() ? 1 : 2),
        .status = decision}));
  }
  if (call.Accepted(call.session().pairs().Connect(id, address), why)) {
    scene.card.Connect(*pair, peer);
  }
}

void DisconnectQp(Scene& scene, Client& client) {
  const QueuePairId id = PickId(scene, client, &Client::queue_pairs);
  const std::shared_ptr<QueuePair> pair = FindById(client.queue_pairs, id);
  Call call(scene, client, "DisconnectQp " + Name("qp", pair, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(pair == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(pair != nullptr && pair->shown_state() != QueuePairState::kReadyToSend, ErrorReason::QP_NOT_CONNECTED);
  if (call.Accepted(call.session().pairs().Disconnect(id), why)) {
    scene.card.Disconnect(*pair);
  }
}

void FlushQp(Scene& scene, Client& client) {
  const QueuePairId id = PickId(scene, client, &Client::queue_pairs);
  const std::shared_ptr<QueuePair> pair = FindById(client.queue_pairs, id);
  Call call(scene, client, "Flush " + Name("qp", pair, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(pair == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  if (call.Accepted(call.session().pairs().Flush(id), why)) {
    scene.card.Flush(*pair);
  }
}

void CloseQp(Scene& scene, Client& client) {
  const QueuePairId id = PickFitting(scene, client, &Client::queue_pairs, IsBroken);
  const std::shared_ptr<QueuePair> pair = FindById(client.queue_pairs, id);
  const ReportPlan report_plan = DrawReportPlan(scene, core::RequestKind::kCloseQp, id.value, Resource::kQueuePairs);
  Call call(scene, client, "CloseQp " + Name("qp", pair, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(pair == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  const auto progress =
      call.session().pairs().Close(id, report_plan.choice, scene.mailbox.DoneFor(report_plan.report.callback));
  if (call.Accepted(progress, why, /*must_pend=*/false)) {
    scene.card.Disconnect(*pair);
    scene.model.RemoveQueuePair(client, *pair);
    (void)scene.model.Settle(client);
  }
}

uint64_t HasPair(const Client& client) { return client.queue_pairs.empty() ? 0 : 1; }

bool Any(const Client& client, bool (*is)(const QueuePair&)) {
  return std::any_of(client.queue_pairs.begin(), client.queue_pairs.end(),
                     [is](const auto& pair) { return is(*pair); });
}

}  // namespace

std::vector<ClientStep> PairSteps() {
  return {
      {CreateQp,
       [](const Client& client) -> uint64_t {
         const bool can = !client.domains.empty() && !client.completion_queues.empty();
         return !can ? 0 : client.queue_pairs.size() < 3 ? 80 : 12;
       }},
      {QueryQp, [](const Client& client) { return 4 * HasPair(client); }},
      {ConnectQp,
       [](const Client& client) -> uint64_t {
         return Any(client, IsAwaited) ? 150 : Any(client, IsFresh) ? 60 : HasPair(client);
       }},
      {DisconnectQp, [](const Client& client) { return 2 * HasPair(client); }},
      {FlushQp, [](const Client& client) { return 2 * HasPair(client); }},
      {CloseQp, [](const Client& client) -> uint64_t { return Any(client, IsBroken) ? 40 : 2 * HasPair(client); }},
  };
}

}  // namespace rnicd::simulation
