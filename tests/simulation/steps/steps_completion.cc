// Completion queues: their calls, and how completions and overruns reach them.

#include <string>

#include "base/ndk/completion_reason.h"
#include "tests/simulation/steps/by_ring.h"
#include "tests/simulation/steps/closing.h"
#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

using core::Resource;

uint32_t DrawDepth(const Scene& scene) {
  if (scene.Careless()) {
    return scene.dice.Chance(50) ? 0 : 70000;
  }
  return static_cast<uint32_t>(scene.dice.Chance(10) ? scene.dice.Between(1, 4) : scene.dice.Between(16, 40));
}

// `before`: entries already charged.
Refusals CheckDepth(const Scene& scene, const Client& client, uint32_t depth, uint32_t before) {
  Refusals why;
  why.If(depth == 0, ErrorReason::FIELD_OUT_OF_RANGE);
  why.If(depth > 65536, ErrorReason::ABOVE_ADAPTER_LIMIT);
  scene.model.CheckQuota(client, Resource::kCqEntries, depth - std::min(depth, before), why);
  return why;
}

// 0 for a queue that is not mapped, or whose depth is invalid.
uint32_t DrawMappedDepth(const Scene& scene, bool mapped, uint32_t depth) {
  if (!mapped || depth == 0 || depth > 65536) {
    return 0;
  }
  return depth + static_cast<uint32_t>(scene.dice.Chance(50) ? 0 : scene.dice.Below(30));
}

absl::Status CreateUnmapped(const core::SessionGuard& session, const core::MappedCqArguments& arguments,
                            CompletionQueue& queue) {
  RNICD_ASSIGN_OR_RETURN(queue.id, session.queues().Create(arguments.adapter, arguments.depth, arguments.context));
  return absl::OkStatus();
}

absl::Status CreateMapped(Scene& scene, const Client& client, const core::SessionGuard& session,
                          const core::MappedCqArguments& arguments, CompletionQueue& queue) {
  RNICD_ASSIGN_OR_RETURN(const core::CreatedMappedCq created, session.queues().CreateMapped(arguments));
  const UniqueFd file = RedeemShared(scene, client, {created.memory, created.pipe},
                                     session.queues().Duplicate(created.queue, core::SharedDescriptor::kMemory));
  queue.id = created.queue;
  queue.mapped = std::make_shared<MappedUser>(file, created.file_bytes);
  queue.mapped_depth_max = arguments.depth_max;
  return absl::OkStatus();
}

void CreateCq(Scene& scene, Client& client) {
  const AdapterId id = PickFitting(scene, client, &Client::adapters, [](const Adapter& each) { return IsOpen(each); });
  const std::shared_ptr<Adapter> adapter = FindById(client.adapters, id);
  const uint32_t depth = DrawDepth(scene);
  const uint64_t context = scene.dice.Below(1000);
  const bool mapped = client.uses_rings && scene.dice.Chance(70);
  const uint32_t depth_max = DrawMappedDepth(scene, mapped, depth);
  Call call(scene, client,
            "CreateCq on " + Name("a", adapter, id.value) + " depth " + std::to_string(depth) +
                (mapped ? " mapped to " + std::to_string(depth_max) : ""));
  if (!call.admitted()) {
    return;
  }
  Refusals why = CheckDepth(scene, client, depth, 0);
  why.If(adapter == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  scene.model.CheckQuota(client, Resource::kCompletionQueues, 1, why);
  const uint64_t shared = depth_max != 0 ? MappedUser::HeapOf(depth_max) : 0;
  scene.model.CheckHeap(client, {{Resource::kCompletionQueues, 1}, {Resource::kCqEntries, depth}}, shared, why);
  if (why.none() && mapped) {
    SharedFileMayFail(scene, why);
  }
  why.If(adapter != nullptr && adapter->closing.begun, ErrorReason::OBJECT_CLOSING);
  if (why.none()) {
    (void)scene.model.faults.Strikes(Fault::kCreateCompletionQueue, why);
  }
  auto queue = std::make_shared<CompletionQueue>();
  const core::MappedCqArguments arguments{.adapter = id, .depth = depth, .context = context, .depth_max = depth_max};
  const absl::Status made = mapped ? CreateMapped(scene, client, call.session(), arguments, *queue)
                                   : CreateUnmapped(call.session(), arguments, *queue);
  if (!call.Accepted(made, why)) {
    return;
  }
  queue->number = scene.model.NextNumber();
  queue->adapter = adapter;
  queue->context = context;
  queue->depth = depth;
  scene.trace.Add(" cq" + std::to_string(queue->number));
  client.completion_queues.push_back(std::move(queue));
}

void ResizeCq(Scene& scene, Client& client) {
  const CompletionQueueId id = PickId(scene, client, &Client::completion_queues);
  const std::shared_ptr<CompletionQueue> queue = FindById(client.completion_queues, id);
  const uint32_t depth = DrawDepth(scene);
  Call call(scene, client, "ResizeCq " + Name("cq", queue, id.value) + " to " + std::to_string(depth));
  if (!call.admitted()) {
    return;
  }
  Refusals why = CheckDepth(scene, client, depth, queue != nullptr ? queue->depth : 0);
  why.If(queue == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If((scene.options.soft.adapter_flags & kAdapterFlagCqResize) == 0, ErrorReason::DEVICE_NOT_CAPABLE);
  if (queue != nullptr) {
    why.If(queue->closing.begun, ErrorReason::OBJECT_CLOSING);
    why.If(queue->overrun, ErrorReason::CQ_OVERRUN);
    why.If(queue->results.size() > depth, ErrorReason::CQ_BACKLOG);
    why.If(queue->mapped != nullptr && depth > queue->mapped_depth_max, ErrorReason::ABOVE_MAPPED_DEPTH);
  }
  if (call.Accepted(call.session().queues().Resize(id, depth), why)) {
    queue->depth = depth;
  }
}

void ArmCq(Scene& scene, Client& client) {
  const CompletionQueueId id = PickId(scene, client, &Client::completion_queues);
  const std::shared_ptr<CompletionQueue> queue = FindById(client.completion_queues, id);
  const std::vector<CqNotifyType> types = {CqNotifyType::kAny, CqNotifyType::kAny, CqNotifyType::kSolicited,
                                           CqNotifyType::kErrors};
  const CqNotifyType type = scene.dice.Pick(types);
  Call call(scene, client, "ArmCq " + Name("cq", queue, id.value) + " for " + std::to_string(static_cast<int>(type)));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(queue == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  if (call.Accepted(ArmEitherWay(scene, client, call.session(), id, type), why)) {
    queue->Arm(type);
  }
}

bool SameResult(const Completion& is, const Completion& should) {
  return is.request_context == should.request_context && is.type == should.type && is.status == should.status &&
         is.reason == should.reason && is.bytes == should.bytes && is.invalidated_token == should.invalidated_token &&
         is.qp_context == should.qp_context;
}

// The result that the pair's owner must see.
Completion ResultOf(const provider::Completion& reported, bool refused, const QueuePair& pair) {
  return {.status = reported.status,
          .reason = refused ? reported.refusal : CompletionReason(reported.type, reported.status, reported.at_peer),
          .type = reported.type,
          .bytes = reported.bytes,
          .qp_context = pair.context,
          .request_context = reported.request_context,
          .invalidated_token = reported.invalidated};
}

// What a client finds in the memory of a mapped queue.
absl::StatusOr<std::vector<Completion>> ReadMapped(Scene& scene, CompletionQueue& queue, uint32_t most) {
  if (queue.mapped->status() == static_cast<uint32_t>(NtStatus::kBufferOverflow)) {
    return MakeError(ErrorReason::CQ_OVERRUN, "cq_id");
  }
  return queue.mapped->Take(most, scene.world.witness);
}

// Compares what came with what had to come.
void TakeResults(Scene& scene, CompletionQueue& queue, const std::vector<Completion>& results, uint32_t most) {
  const size_t count = std::min<size_t>(most, queue.results.size());
  scene.trace.Add(" " + std::to_string(results.size()));
  bool same = results.size() == count;
  for (size_t index = 0; same && index < count; ++index) {
    same = SameResult(results[index], queue.results[index]);
  }
  if (!same) {
    scene.findings.Report("EveryPostCompletesOnce", "cq" + std::to_string(queue.number) + " held other results");
  }
  queue.results.erase(queue.results.begin(), queue.results.begin() + static_cast<std::ptrdiff_t>(count));
  queue.taken += count;
}

void GetCqResults(Scene& scene, Client& client) {
  const CompletionQueueId id = PickFitting(scene, client, &Client::completion_queues,
                                           [](const CompletionQueue& each) { return !each.results.empty(); });
  const std::shared_ptr<CompletionQueue> queue = FindById(client.completion_queues, id);
  const auto most = static_cast<uint32_t>(scene.dice.Between(1, 20));
  Call call(scene, client, "GetCqResults of " + Name("cq", queue, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(queue == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  const bool in_memory = queue != nullptr && queue->mapped != nullptr && !scene.Careless();
  why.If(queue != nullptr && queue->mapped != nullptr && !in_memory, ErrorReason::CQ_MAPPED);
  why.If(queue != nullptr && (queue->mapped == nullptr || in_memory) && queue->overrun, ErrorReason::CQ_OVERRUN);
  const auto results = in_memory ? ReadMapped(scene, *queue, most) : call.session().queues().GetResults(id, most);
  if (call.Accepted(results.status(), why)) {
    TakeResults(scene, *queue, *results, most);
  }
}

void CloseCq(Scene& scene, Client& client) {
  const CompletionQueueId id =
      PickFitting(scene, client, &Client::completion_queues, [](const CompletionQueue& each) { return each.overrun; });
  const std::shared_ptr<CompletionQueue> queue = FindById(client.completion_queues, id);
  const ReportPlan report_plan =
      DrawReportPlan(scene, core::RequestKind::kCloseCq, id.value, Resource::kCompletionQueues);
  Call call(scene, client, "CloseCq " + Name("cq", queue, id.value));
  if (!call.admitted()) {
    return;
  }
  bool must_pend = false;
  const Refusals why = CheckClose(client, queue, must_pend);
  const auto progress =
      call.session().queues().Close(id, report_plan.choice, scene.mailbox.DoneFor(report_plan.report.callback));
  if (call.Accepted(progress, why, must_pend)) {
    Close(scene, client, *queue, must_pend, report_plan.report);
  }
}

// A dead queue fails its queue pairs, on a worker. An ending session ends them anyway.
void Overrun(Scene& scene, Client& client, const std::shared_ptr<CompletionQueue>& queue) {
  scene.trace.Add(" cq" + std::to_string(queue->number) + " overruns");
  if (client.ending) {
    return;
  }
  scene.model.PostToWorker(client, "end the queue pairs of cq" + std::to_string(queue->number),
                           [&scene, &client, queue] {
                             if (client.ending) {
                               return;
                             }
                             auto pairs = client.queue_pairs;
                             Model::SortByIndex(pairs);
                             for (const std::shared_ptr<QueuePair>& pair : pairs) {
                               if (pair->receive_queue == queue || pair->initiator_queue == queue) {
                                 scene.card.Flush(*pair);
                               }
                             }
                           });
}

std::string CompletionText(const provider::Completion& completion) {
  return "context " + std::to_string(completion.request_context) + " type " +
         std::to_string(static_cast<int>(completion.type)) + " " + std::string(NtStatusName(completion.status)) + " " +
         std::to_string(completion.bytes) + " bytes";
}

bool HasDueStatus(const provider::Completion& is, const DueReport& due) {
  return due.refused.none() ? is.status == due.completion.status
                            : due.refused.Names(is.refusal) && is.status == RowOf(is.refusal).ntstatus;
}

bool IsAsDue(const provider::Completion& is, const DueReport& report) {
  const provider::Completion& due = report.completion;
  const bool has_bytes = due.status == NtStatus::kSuccess && due.type != OperationType::kSend;
  return is.request_context == due.request_context && is.type == due.type && HasDueStatus(is, report) &&
         (!has_bytes || is.bytes == due.bytes) && is.invalidated == due.invalidated && is.solicited == due.solicited;
}

bool HasLivingQueue(const Client& client) {
  return std::any_of(client.completion_queues.begin(), client.completion_queues.end(),
                     [](const auto& queue) { return !queue->overrun && !queue->closing.begun; });
}

uint64_t ResultsOf(const Client& client) {
  uint64_t results = 0;
  for (const auto& queue : client.completion_queues) {
    results += queue->results.size();
  }
  return results;
}

uint64_t HasQueue(const Client& client) { return client.completion_queues.empty() ? 0 : 1; }

// Moves a completion to its queue. False after a finding.
bool Deliver(Scene& scene, const Witness::Reported& reported) {
  const auto& pairs = scene.model.queue_pairs;
  const auto found =
      std::find_if(pairs.begin(), pairs.end(), [&reported](const auto& each) { return each->number == reported.pair; });
  const bool is_receive = reported.queue == provider::WorkQueue::kReceive;
  const std::string text = "qp" + std::to_string(reported.pair) + (is_receive ? " receive " : " initiator ") +
                           CompletionText(reported.completion);
  scene.trace.Add("; " + text);
  if (found == pairs.end()) {
    scene.findings.Report("EveryPostCompletesOnce", "a queue pair that is closed reported " + text);
    return false;
  }
  QueuePair& pair = **found;
  std::deque<DueReport>& due = pair.due[static_cast<size_t>(reported.queue)];
  if (due.empty() || !IsAsDue(reported.completion, due.front())) {
    const std::string instead = due.empty()                  ? "nothing"
                                : due.front().refused.none() ? CompletionText(due.front().completion)
                                                             : "the refusal " + due.front().refused.Text();
    scene.findings.Report("EveryPostCompletesOnce", text + " came instead of " + instead);
    return false;
  }
  const bool refused = !due.front().refused.none();
  due.pop_front();
  const std::shared_ptr<CompletionQueue>& queue = is_receive ? pair.receive_queue : pair.initiator_queue;
  if (!pair.dead() && queue->Push(ResultOf(reported.completion, refused, pair), reported.completion.solicited)) {
    Overrun(scene, *pair.client, queue);
  }
  return true;
}

}  // namespace

// Every accepted post completes exactly once, in posting order, with its own context and the outcome of its execution;
// a silent one that succeeded does not. Nothing is expected any more after a finding.
void DeliverCompletions(Scene& scene) {
  for (const Witness::Reported& reported : scene.world.witness.completions) {
    if (!Deliver(scene, reported)) {
      return;
    }
  }
}

void DeliverDueCompletions(Scene& scene) {
  size_t due = 0;
  for (const auto& pair : scene.model.queue_pairs) {
    due += pair->due[0].size() + pair->due[1].size();
  }
  std::vector<Witness::Reported>& reported = scene.world.witness.completions;
  for (; due != 0 && !reported.empty() && Deliver(scene, reported.front()); --due) {
    reported.erase(reported.begin());
  }
}

std::vector<ClientStep> CompletionSteps() {
  return {
      {CreateCq,
       [](const Client& client) -> uint64_t { return client.adapters.empty()  ? 0
                                                     : HasLivingQueue(client) ? 6
                                                                              : 120; }},
      {ResizeCq, [](const Client& client) { return 4 * HasQueue(client); }},
      {ArmCq, [](const Client& client) { return 24 * HasQueue(client); }},
      {GetCqResults, [](const Client& client) { return 8 * HasQueue(client) + 4 * ResultsOf(client); }},
      {CloseCq, [](const Client& client) { return 2 * HasQueue(client); }},
  };
}

}  // namespace rnicd::simulation
