#include "tests/simulation/model/scene.h"

#include "base/status.h"

namespace rnicd::simulation {
namespace {

void AddLedger(Fingerprint& print, const core::Ledger& ledger) {
  for (size_t index = 0; index < core::kResourceCount; ++index) {
    const auto resource = static_cast<core::Resource>(index);
    print.emplace_back(core::ResourceName(resource), ledger.used(resource));
  }
}

}  // namespace

Fingerprint TakeFingerprint(const Scene& scene, const Client& client) {
  World& world = scene.world;
  core::Session& session = *client.session;
  // None for a session that is ending, whose objects nobody can see.
  const absl::StatusOr<core::SessionGuard> guard = session.Begin();
  Fingerprint print;
  print.reserve(256);  // More than most sessions need.
  AddLedger(print, session.ledger());
  AddLedger(print, *session.tenant().ledger());
  AddLedger(print, *world.node.ledger);
  print.emplace_back("keys", world.provider.live_regions());
  print.emplace_back("device adapters", world.witness.living.adapters);
  print.emplace_back("device domains", world.witness.living.domains);
  print.emplace_back("device completion queues", world.witness.living.completion_queues);
  print.emplace_back("device queue pairs", world.witness.living.queue_pairs);
  print.emplace_back("mappings", world.os.live_mappings());
  print.emplace_back("worker jobs", world.workers.jobs.size());
  print.emplace_back("reaper jobs", world.reapers.jobs.size());
  print.emplace_back("card jobs", world.engine().jobs.size());
  print.emplace_back("tickets", world.tickets.size());
  print.emplace_back("completions", world.witness.completions.size());
  print.emplace_back("peers gone", world.witness.peers_gone.size());
  for (const auto& [id, view] : session.ViewRegions()) {
    print.emplace_back("region", id.value);
    print.emplace_back("region state", std::hash<std::string_view>{}(view.state));
    print.emplace_back("region base", view.base.value);
    print.emplace_back("region length", view.length);
    if (guard.ok()) {
      const absl::StatusOr<LocalToken> local = guard->regions().GetLocalToken(id);
      const absl::StatusOr<RemoteToken> remote = guard->regions().GetRemoteToken(id);
      print.emplace_back("local token", local.ok() ? local->value : 0);
      print.emplace_back("remote token", remote.ok() ? remote->value : 0);
    }
  }
  for (const std::shared_ptr<QueuePair>& pair : client.queue_pairs) {
    if (guard.ok()) {
      const auto view = guard->pairs().Query(pair->id);
      print.emplace_back("queue pair state", view.ok() ? static_cast<uint64_t>(view->state) : UINT64_MAX);
    }
  }
  return print;
}

Call::Call(Scene& scene, Client& client, const std::string& what)
    : scene_(scene), client_(client), before_(TakeFingerprint(scene, client)) {
  scene_.trace.BeginStep("s" + std::to_string(client.number) + " " + what);
  absl::StatusOr<core::SessionGuard> guard = client.session->Begin();
  if (guard.ok() == client.ending || (!guard.ok() && !FailedWith(guard.status(), ErrorReason::SESSION_ENDING))) {
    scene_.findings.Report("OnlyLiveSessionsAnswer", "Begin answered " + TextOf(guard.status()));
  }
  if (guard.ok()) {
    guard_.emplace(*std::move(guard));
  } else {
    scene_.trace.Add(" -> " + TextOf(guard.status()));
  }
}

// A refusal changes nothing: no count, no object, no token.
void Call::CheckRefusalChangesNothing() {
  const Fingerprint after = TakeFingerprint(scene_, client_);
  for (size_t index = 0; index < before_.size(); ++index) {
    if (index >= after.size() || before_[index] != after[index]) {
      scene_.findings.Report("RefusalChangesNothing",
                             std::string(before_[index].first) + " was " + std::to_string(before_[index].second) +
                                 " and is " + (index < after.size() ? std::to_string(after[index].second) : "gone"));
      return;
    }
  }
  if (after.size() > before_.size()) {
    scene_.findings.Report("RefusalChangesNothing", "there is one more " + std::string(after[before_.size()].first));
  }
}

bool Call::Accepted(const absl::Status& status, const Refusals& why) {
  scene_.trace.Add(" -> " + TextOf(status));
  if (!why.Allows(status)) {
    scene_.findings.Report("CallsAreJudgedByTheRules", "answered " + TextOf(status) + " instead of " + why.Text());
    return false;
  }
  if (!status.ok()) {
    CheckRefusalChangesNothing();
  }
  return status.ok();
}

bool Call::Pends(bool pends, bool must_pend) {
  scene_.trace.Add(pends ? ", pending" : "");
  if (pends != must_pend) {
    scene_.findings.Report("CallsAreJudgedByTheRules", pends ? "pends and need not" : "is over and must pend");
  }
  return pends == must_pend;
}

absl::StatusOr<std::shared_ptr<core::MemoryObject>> FindObject(const Client& client, MemoryObjectId id) {
  RNICD_ASSIGN_OR_RETURN(const core::SessionGuard session, client.session->Begin());
  return session.memory().Find(id);
}

ReportPlan DrawReportPlan(Scene& scene, core::RequestKind kind, uint64_t object_id, core::Resource charge) {
  ReportPlan report_plan;
  report_plan.choice.to_events = scene.dice.Chance(50);
  report_plan.choice.request_context = scene.dice.Below(1000);
  report_plan.report = {.to_events = report_plan.choice.to_events,
                        .callback = scene.mailbox.Reserve(),
                        .kind = kind,
                        .request_context = report_plan.choice.request_context,
                        .object_id = object_id,
                        .charge = charge};
  return report_plan;
}

}  // namespace rnicd::simulation
