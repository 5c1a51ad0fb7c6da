// Sessions: opening, joining, the ways to end, and what the end takes back.

#include <algorithm>
#include <string>

#include "tests/simulation/steps.h"

namespace rnicd::simulation {
namespace {

using core::EndCause;
using core::Resource;

constexpr uint64_t kUids = 3;

core::Caller DrawCaller(Dice& dice, uint64_t number, const std::shared_ptr<ManualProcess>& process) {
  const auto uid = static_cast<uid_t>(1000 + dice.Below(kUids));
  return {.process = {.high = 1, .low = number}, .pid = 0, .uid = uid, .gid = uid, .handle = process};
}

uint64_t SessionsOf(const Model& model, uid_t uid) {
  uint64_t sessions = 0;
  for (const auto& tenant : model.tenants) {
    sessions += !tenant->over && tenant->caller.uid == uid ? 1 : 0;
  }
  return sessions;
}

void CheckReclaimed(Scene& scene, const core::Reclaimed& is, const core::Reclaimed& should) {
  if (is.regions != should.regions || is.pinned_bytes != should.pinned_bytes ||
      is.memory_bytes != should.memory_bytes || is.failures != should.failures) {
    const auto text = [](const core::Reclaimed& each) {
      return std::to_string(each.regions) + " regions, " + std::to_string(each.pinned_bytes) + " pinned, " +
             std::to_string(each.memory_bytes) + " bytes, " + std::to_string(each.failures) + " failures";
    };
    scene.findings.Report("WhatIsReclaimedIsReported", text(is) + " instead of " + text(should));
  }
}

// Ends everything the tenant has, children before parents.
core::Reclaimed TakeBack(Scene& scene, Tenant& tenant) {
  Model& model = scene.model;
  std::erase_if(model.tickets, [&tenant](const Ticket& ticket) { return ticket.tenant == &tenant; });
  const Usage usage = model.UsageOf(tenant);
  core::Reclaimed reclaimed{.pinned_bytes = usage[static_cast<size_t>(Resource::kPinnedBytes)],
                            .memory_bytes = usage[static_cast<size_t>(Resource::kMemoryBytes)]};
  std::vector<std::shared_ptr<Region>> open;
  for (const auto& region : tenant.regions) {
    if (!region->closing.begun) {
      open.push_back(region);
    }
  }
  reclaimed.regions = open.size();
  Model::SortByIndex(tenant.queue_pairs);
  while (!tenant.queue_pairs.empty()) {
    const std::shared_ptr<QueuePair> pair = tenant.queue_pairs.front();
    scene.card.Disconnect(*pair);
    model.RemoveQueuePair(tenant, *pair);
  }
  while (!tenant.windows.empty()) {
    model.RemoveWindow(tenant, *tenant.windows.front());
  }
  // A region that was being closed reports that; what the card refused then is nobody's count.
  (void)model.Settle(tenant);
  for (const auto& region : open) {
    region->closing.begun = true;
  }
  reclaimed.failures = model.Settle(tenant);
  tenant.mappings.clear();
  for (const auto& queue : tenant.completion_queues) {
    queue->closing.begun = true;
  }
  for (const auto& domain : tenant.domains) {
    domain->closing.begun = true;
  }
  for (const auto& adapter : tenant.adapters) {
    adapter->closing.begun = true;
  }
  (void)model.Settle(tenant);
  tenant.memories.clear();
  return reclaimed;
}

// What the job of a reaper does.
void ApplyTearDown(Scene& scene, Tenant& tenant) {
  const core::Reclaimed reclaimed = TakeBack(scene, tenant);
  tenant.over = true;
  tenant.ending_event_due = true;
  if (tenant.cause == EndCause::kConnectionLost && tenant.process->exited) {
    tenant.cause = EndCause::kProcessExited;
  }
  for (const uint64_t callback : tenant.end_callbacks) {
    scene.mailbox.Expect(callback, Refusals());
    if (const Mailbox::Letter* letter = scene.mailbox.Find(callback); letter != nullptr) {
      CheckReclaimed(scene, letter->reclaimed.value_or(core::Reclaimed{}), reclaimed);
    }
  }
}

void BeginEnd(Scene& scene, Tenant& tenant, EndCause cause) {
  if (!tenant.ending) {
    tenant.ending = true;
    tenant.cause = cause;
    ReapWhenIdle(scene, tenant);
  }
}

void Join(Scene& scene, Tenant& tenant) {
  core::Caller caller = tenant.caller;
  const bool stranger = scene.dice.Chance(30);
  caller.process.low += stranger ? 1 : 0;
  scene.trace.BeginStep("t" + std::to_string(tenant.number) + " Join" + (stranger ? " by a stranger" : ""));
  Refusals why;
  why.If(stranger || tenant.over, ErrorReason::SESSION_NOT_FOUND);
  const auto joined = scene.world.registry.Join(tenant.session->id(), caller);
  scene.trace.Add(" -> " + TextOf(joined.status()));
  if (!why.Allows(joined.status())) {
    scene.findings.Report("CallsAreJudgedByTheRules", "Join answered " + TextOf(joined.status()));
  }
  tenant.connections += joined.ok() ? 1 : 0;
}

}  // namespace

void ReapWhenIdle(Scene& scene, Tenant& tenant) {
  if (tenant.ending && tenant.jobs == 0 && !tenant.over) {
    scene.model.reaper_tasks.push_back({.what = "take back t" + std::to_string(tenant.number),
                                        .tenant = &tenant,
                                        .apply = [&scene, &tenant] { ApplyTearDown(scene, tenant); }});
  }
}

void OpenSession(Scene& scene) {
  auto tenant = std::make_shared<Tenant>();
  tenant->number = scene.model.NextNumber();
  tenant->process = std::make_shared<ManualProcess>();
  // Processes are numbered apart, so that the next number is a stranger's.
  tenant->caller = DrawCaller(scene.dice, 2 * tenant->number, tenant->process);
  const bool long_label = scene.Careless();
  scene.trace.BeginStep("OpenSession t" + std::to_string(tenant->number) + " of uid " +
                        std::to_string(tenant->caller.uid));
  Refusals why;
  why.If(long_label, ErrorReason::FIELD_OUT_OF_RANGE);
  const uint64_t most = scene.model.limits.uid[Resource::kSessions];
  why.If(most != 0 && SessionsOf(scene.model, tenant->caller.uid) >= most, ErrorReason::QUOTA_SESSIONS);
  auto opened = scene.world.registry.Open(tenant->caller, long_label ? std::string(65, 'x') : "simulated");
  scene.trace.Add(" -> " + TextOf(opened.status()));
  if (!why.Allows(opened.status())) {
    scene.findings.Report("CallsAreJudgedByTheRules", "OpenSession answered " + TextOf(opened.status()));
  }
  if (opened.ok()) {
    tenant->session = *std::move(opened);
    scene.model.tenants.push_back(std::move(tenant));
  }
}

void EndSession(Scene& scene, Tenant& tenant) {
  const std::string who = "t" + std::to_string(tenant.number);
  core::SessionRegistry& registry = scene.world.registry;
  switch (scene.dice.Below(4)) {
    case 0: {
      scene.trace.BeginStep(who + " dies");
      tenant.process->exited = true;
      registry.EndAllOf(tenant.caller.process, EndCause::kProcessExited);
      BeginEnd(scene, tenant, EndCause::kProcessExited);
      return;
    }
    case 1: {
      scene.trace.BeginStep(who + " dies, its connections first");
      tenant.process->exited = true;
      while (tenant.connections > 0) {
        --tenant.connections;
        registry.DropConnection(tenant.session);
      }
      BeginEnd(scene, tenant, EndCause::kConnectionLost);
      return;
    }
    case 2: {
      scene.trace.BeginStep(who + " loses a connection");
      if (tenant.connections > 0) {
        --tenant.connections;
        registry.DropConnection(tenant.session);
        if (tenant.connections == 0) {
          BeginEnd(scene, tenant, EndCause::kConnectionLost);
        }
      }
      return;
    }
    default: {
      scene.trace.BeginStep(who + " CloseSession");
      const uint64_t callback = scene.mailbox.Reserve();
      tenant.end_callbacks.push_back(callback);
      registry.End(tenant.session, EndCause::kClosed, scene.mailbox.EndDoneFor(callback));
      if (tenant.over) {
        scene.mailbox.Expect(callback, Refusals());
      }
      BeginEnd(scene, tenant, EndCause::kClosed);
      return;
    }
  }
}

void DrainSessions(Scene& scene) {
  scene.trace.BeginStep("the daemon stops");
  scene.world.registry.Drain(EndCause::kDaemonStopping);
  // In the registry's order.
  std::vector<std::shared_ptr<Tenant>> tenants = scene.model.tenants;
  std::sort(tenants.begin(), tenants.end(),
            [](const auto& one, const auto& other) { return one->session->id() < other->session->id(); });
  for (const auto& tenant : tenants) {
    BeginEnd(scene, *tenant, EndCause::kDaemonStopping);
  }
  const auto refused = scene.world.registry.Open(DrawCaller(scene.dice, 1, nullptr), "late");
  if (!FailedWith(refused.status(), ErrorReason::DAEMON_DRAINING)) {
    scene.findings.Report("CallsAreJudgedByTheRules", "OpenSession answered " + TextOf(refused.status()));
  }
}

std::vector<ClientStep> SessionSteps() {
  return {{Join, [](const Tenant& tenant) -> uint64_t { return tenant.ending ? 0 : 1; }}};
}

}  // namespace rnicd::simulation
