#include "tests/simulation/steps/by_ring.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/ndk/op_flags.h"
#include "ring/chain.h"

namespace rnicd::simulation {
namespace {

using ring::Opcode;

RingUser::Request WithoutPayload(Opcode opcode, uint64_t object) {
  return {.entry = {.opcode = opcode, .object = object}, .payload = {}};
}

// A ring has no way to give an inline SGE another length than its bytes have.
bool InlineLengthsAreTrue(const WorkRequest& request) {
  return std::visit(
      [&request](const auto& operation) {
        if constexpr (requires { operation.sges; }) {
          return (request.flags & kOpFlagInline) == 0 || std::ranges::all_of(operation.sges, [](const Sge& sge) {
                   return sge.inline_data.size() == sge.length;
                 });
        }
        return true;
      },
      request.operation);
}

// Nothing for a chain that only a call can carry.
std::optional<RingUser::Request> EncodePost(QueuePairId id, std::span<const WorkRequest> chain, uint16_t flags) {
  RingUser::Request encoded = WithoutPayload(Opcode::kPost, id.value);
  encoded.entry.flags = flags;
  encoded.entry.count = static_cast<uint32_t>(chain.size());
  encoded.tokens = encoded.entry.count;
  for (const WorkRequest& request : chain) {
    const absl::StatusOr<size_t> bytes = ring::EncodedBytes(request);
    if (!bytes.ok() || !InlineLengthsAreTrue(request)) {
      return std::nullopt;
    }
    const size_t begin = encoded.payload.size();
    encoded.payload.resize(begin + *bytes);
    ring::Encode(request, encoded.payload.data() + begin);
  }
  return encoded;
}

RingUser::Request EncodeRegister(const core::RegisterArguments& arguments) {
  RingUser::Request encoded = WithoutPayload(Opcode::kRegisterMr, arguments.region.value);
  encoded.entry.count = static_cast<uint32_t>(arguments.chain.size());
  encoded.entry.length = arguments.length;
  encoded.entry.argument = arguments.flags;
  encoded.payload.resize(arguments.chain.size() * ring::kMdlBytes);
  for (size_t index = 0; index < arguments.chain.size(); ++index) {
    ring::Encode(arguments.chain[index], encoded.payload.data() + index * ring::kMdlBytes);
  }
  return encoded;
}

// The audit line of an entry: of grants, releases and disclosures, and of every refusal.
void ExpectDecision(Scene& scene, const Client& client, const ring::Submission& entry, const absl::Status& status) {
  std::string_view what;
  std::string kind = "mr_id=";
  switch (entry.opcode) {
    case Opcode::kRegisterMr:
      what = "MemoryService.RegisterMr";
      break;
    case Opcode::kDeregisterMr:
      what = "MemoryService.DeregisterMr";
      break;
    case Opcode::kGetRemoteToken:
      what = "MemoryService.GetRemoteToken";
      break;
    case Opcode::kPost:
      what = "QueueService.Post";
      kind = "qp_id=";
      break;
    case Opcode::kArmCq:
      what = "QueueService.ArmCq";
      kind = "cq_id=";
      break;
    case Opcode::kNop:
      break;
  }
  if (status.ok() && (entry.opcode == Opcode::kPost || entry.opcode == Opcode::kArmCq)) {
    return;
  }
  scene.model.decisions.push_back(TextOf(core::Decision{.what = what,
                                                        .caller = &client.caller,
                                                        .tenant = client.tenant->name,
                                                        .session = client.session->id(),
                                                        .object = kind + std::to_string(entry.object),
                                                        .status = status,
                                                        .note = "ring"}));
}

// The whole entry was refused, and not one request of its chain.
bool IsRefused(const RingUser::Reply& reply) {
  return !reply.status.ok() && reply.outcome.posted == 0 && !ErrorInfoOf(reply.status).field.starts_with("requests[");
}

// Executes a request for which there is room. Nothing if it pends; `late` gets its outcome then.
std::optional<RingUser::Reply> Execute(Scene& scene, Client& client, const core::SessionGuard& session,
                                       const RingUser::Request& request, RingUser::Done late) {
  scene.trace.Add(" by ring");
  auto now = std::make_shared<std::optional<RingUser::Reply>>();
  auto returned = std::make_shared<bool>(false);
  client.ring->Submit(request, [&scene, &client, now, returned, entry = request.entry,
                                late = std::move(late)](const RingUser::Reply& reply) {
    if (*returned) {
      late(reply);
      return;
    }
    const bool whole = entry.opcode != Opcode::kPost || IsRefused(reply);
    ExpectDecision(scene, client, entry, whole ? reply.status : absl::OkStatus());
    *now = reply;
  });
  if (!scene.world.rings.Serve(client.ring->ring(), *client.session, session)) {
    scene.findings.Report("EveryEntryHasOneOutcome", "the daemon calls the indices of a ring impossible");
  }
  client.ring->Poll(scene.findings);
  *returned = true;
  return *now;
}

bool HasRoom(Client& client, const RingUser::Request& request) {
  return client.ring != nullptr && client.ring->Reserve(request);
}

// What a request that never pends gets.
RingUser::Reply ExecuteNow(Scene& scene, Client& client, const core::SessionGuard& session,
                           const RingUser::Request& request) {
  const std::optional<RingUser::Reply> reply = Execute(scene, client, session, request, [](const auto&) {});
  if (!reply.has_value()) {
    scene.findings.Report("EveryEntryHasOneOutcome", "an entry that cannot pend has no outcome");
  }
  return reply.value_or(RingUser::Reply{});
}

// A request that pends ends with an outcome, which this client turns into a callback, and has an audit line of its own.
void ReportByRing(std::string_view call, Report& report) {
  report.to_events = false;
  report.ring_call = call;
}

Registration RegistrationOf(const ring::Outcome& outcome) {
  return {.base_address = VirtualAddress{outcome.base_or_limit},
          .length = outcome.length_or_used,
          .local_token = LocalToken{outcome.local_token},
          .remote_token = RemoteToken{outcome.remote_token}};
}

absl::StatusOr<Registration> RegistrationOf(const RingUser::Reply& reply) {
  return reply.status.ok() ? absl::StatusOr<Registration>(RegistrationOf(reply.outcome)) : reply.status;
}

}  // namespace

absl::StatusOr<PostOutcome> PostEitherWay(Scene& scene, Client& client, const core::SessionGuard& session,
                                          QueuePairId id, std::span<const WorkRequest> chain) {
  const std::optional<RingUser::Request> request = EncodePost(id, chain, 0);
  if (!request.has_value() || !HasRoom(client, *request)) {
    return session.pairs().Post(id, chain);
  }
  const RingUser::Reply reply = ExecuteNow(scene, client, session, *request);
  if (IsRefused(reply)) {
    return reply.status;
  }
  PostOutcome outcome{.posted = reply.outcome.posted, .failure = reply.status};
  for (uint32_t index = 0; index < reply.tokens.size(); ++index) {
    if (reply.tokens[index] != 0) {
      outcome.issued_tokens.push_back({.request_index = index, .remote_token = RemoteToken{reply.tokens[index]}});
    }
  }
  return outcome;
}

std::optional<absl::StatusOr<PostOutcome>> PostWithoutOutcomeEitherWay(Scene& scene, Client& client,
                                                                       const core::SessionGuard& session,
                                                                       QueuePairId id,
                                                                       std::span<const WorkRequest> chain,
                                                                       const absl::Status& whole) {
  const std::optional<RingUser::Request> request = EncodePost(id, chain, ring::kFlagNoOutcome);
  if (!request.has_value() || !HasRoom(client, *request)) {
    return session.pairs().Post(id, chain, core::Refusals::kAsCompletions);
  }
  if (Execute(scene, client, session, *request, [](const auto&) {}).has_value()) {
    scene.findings.Report("EveryEntryHasOneOutcome", "an entry without outcome has one");
  }
  if (!whole.ok()) {
    ExpectDecision(scene, client, request->entry, whole);
  }
  return std::nullopt;
}

absl::StatusOr<RemoteToken> GetRemoteTokenEitherWay(Scene& scene, Client& client, const core::SessionGuard& session,
                                                    MemoryRegionId id) {
  const RingUser::Request request = WithoutPayload(Opcode::kGetRemoteToken, id.value);
  if (!HasRoom(client, request)) {
    return session.regions().GetRemoteToken(id);
  }
  const RingUser::Reply reply = ExecuteNow(scene, client, session, request);
  return reply.status.ok() ? absl::StatusOr<RemoteToken>(RemoteToken{reply.outcome.remote_token}) : reply.status;
}

absl::Status ArmEitherWay(Scene& scene, Client& client, const core::SessionGuard& session, CompletionQueueId id,
                          CqNotifyType type) {
  RingUser::Request request = WithoutPayload(Opcode::kArmCq, id.value);
  request.entry.argument = static_cast<uint32_t>(type);
  return HasRoom(client, request) ? ExecuteNow(scene, client, session, request).status : session.queues().Arm(id, type);
}

core::MaybePending<Registration> RegisterEitherWay(Scene& scene, Client& client, const core::SessionGuard& session,
                                                   const core::RegisterArguments& arguments, ReportPlan& plan) {
  const core::Done<Registration> done = scene.mailbox.RegisterDoneFor(plan.report.callback);
  const RingUser::Request request = EncodeRegister(arguments);
  if (!HasRoom(client, request)) {
    return session.regions().Register(arguments, plan.choice, done);
  }
  ReportByRing("MemoryService.RegisterMr", plan.report);
  const std::optional<RingUser::Reply> reply =
      Execute(scene, client, session, request, [done](const RingUser::Reply& late) { done(RegistrationOf(late)); });
  if (!reply.has_value()) {
    return core::MaybePending<Registration>::Pending();
  }
  return RegistrationOf(*reply);
}

core::MaybePending<> DeregisterEitherWay(Scene& scene, Client& client, const core::SessionGuard& session,
                                         MemoryRegionId id, ReportPlan& plan) {
  const core::Done<> done = scene.mailbox.DoneFor(plan.report.callback);
  const RingUser::Request request = WithoutPayload(Opcode::kDeregisterMr, id.value);
  if (!HasRoom(client, request)) {
    return session.regions().Deregister(id, plan.choice, done);
  }
  ReportByRing("MemoryService.DeregisterMr", plan.report);
  const std::optional<RingUser::Reply> reply =
      Execute(scene, client, session, request, [done](const RingUser::Reply& late) { done(late.status); });
  if (!reply.has_value()) {
    return core::MaybePending<>::Pending();
  }
  return reply->status;
}

void ReadLateOutcomes(Scene& scene) {
  for (const std::shared_ptr<Client>& client : scene.model.clients) {
    if (client->ring != nullptr) {
      client->ring->Poll(scene.findings);
    }
  }
}

}  // namespace rnicd::simulation
