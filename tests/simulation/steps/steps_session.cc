// Sessions: opening, joining, the ways to end, and what the end reclaims.

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/steps/steps.h"
#include "tests/simulation/world/draw_policy.h"

namespace rnicd::simulation {
namespace {

using core::EndCause;
using core::Resource;

// The limits of a session: its tenant's where set, otherwise the node's.
core::Limits LimitsOfSession(const Scene& scene, const Tenant& tenant) {
  core::Limits limits = tenant.limits.session;
  for (size_t index = 0; index < core::kResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    limits[resource] = limits[resource] == 0 ? scene.model.limits.session[resource] : limits[resource];
  }
  return limits;
}

// Credentials that a client presents to get another tenant.
struct Shown {
  std::string secret;
  std::string text;
};
Shown DrawGrant(const Scene& scene) {
  Dice& dice = scene.dice;
  const auto& grants = scene.model.tenants.grants();
  if (grants.empty() || !dice.Chance(45)) {
    return {};
  }
  const auto grant = std::next(grants.begin(), static_cast<std::ptrdiff_t>(dice.Below(grants.size())));
  Shown shown{.secret = grant->second.secret, .text = " with grant " + std::to_string(grant->second.number)};
  if (!scene.dice.Chance(15)) {
    return shown;
  }
  shown.text += " spoiled";
  const uint64_t choice = dice.Below(4);
  if (choice == 0 && !scene.model.dead_secrets.empty()) {
    shown.secret = dice.Pick(scene.model.dead_secrets);
  } else if (choice == 1) {
    shown.secret.resize(dice.Between(1, shown.secret.size() - 1));
  } else if (choice == 2) {
    shown.secret += "0";
  } else {
    char& changed = shown.secret[dice.Below(shown.secret.size())];
    changed = changed == '0' ? '1' : '0';
  }
  return shown;
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

// Ends everything the client has, children before parents.
core::Reclaimed TakeBack(Scene& scene, Client& client) {
  Model& model = scene.model;
  std::erase_if(model.tickets, [&client](const Ticket& ticket) { return ticket.client == &client; });
  const Usage usage = model.UsageOf(client);
  core::Reclaimed reclaimed{.pinned_bytes = usage[static_cast<size_t>(Resource::kPinnedBytes)],
                            .memory_bytes = usage[static_cast<size_t>(Resource::kMemoryBytes)]};
  std::vector<std::shared_ptr<Region>> open;
  for (const auto& region : client.regions) {
    if (!region->closing.begun) {
      open.push_back(region);
    }
  }
  reclaimed.regions = open.size();
  Model::SortByIndex(client.queue_pairs);
  while (!client.queue_pairs.empty()) {
    const std::shared_ptr<QueuePair> pair = client.queue_pairs.front();
    scene.card.Disconnect(*pair);
    model.RemoveQueuePair(client, *pair);
  }
  while (!client.windows.empty()) {
    model.RemoveWindow(client, *client.windows.front());
  }
  // A region that was being closed reports its close; a failure of the card is then not counted.
  (void)model.Settle(client);
  for (const auto& region : open) {
    region->closing.begun = true;
  }
  reclaimed.failures = model.Settle(client);
  client.mappings.clear();
  client.ring.reset();
  for (const auto& queue : client.completion_queues) {
    queue->closing.begun = true;
  }
  for (const auto& domain : client.domains) {
    domain->closing.begun = true;
  }
  for (const auto& adapter : client.adapters) {
    adapter->closing.begun = true;
  }
  (void)model.Settle(client);
  client.memories.clear();
  return reclaimed;
}

// The effect of a reaper's job.
void ApplyTearDown(Scene& scene, Client& client) {
  const core::Reclaimed reclaimed = TakeBack(scene, client);
  client.over = true;
  client.ending_event_due = true;
  if (client.cause == EndCause::kConnectionLost && client.process->exited) {
    client.cause = EndCause::kProcessExited;
  }
  scene.model.decisions.push_back(TextOf(core::Decision{.what = "session.end",
                                                        .caller = &client.caller,
                                                        .tenant = client.tenant->name,
                                                        .session = client.session->id(),
                                                        .note = core::EndCauseName(client.cause)}));
  for (const uint64_t callback : client.end_callbacks) {
    scene.mailbox.Expect(callback, Refusals());
    if (const Mailbox::Letter* letter = scene.mailbox.Find(callback); letter != nullptr) {
      CheckReclaimed(scene, letter->reclaimed.value_or(core::Reclaimed{}), reclaimed);
    }
  }
}

// The effect of the reaper's job that cancels the queued jobs of an ending session, in their order.
void ApplyCancel(Scene& scene, Client& client) {
  std::vector<Task> cancelled;
  std::vector<Task> kept;
  for (Task& task : scene.model.worker_tasks) {
    (task.client == &client ? cancelled : kept).push_back(std::move(task));
  }
  scene.model.worker_tasks.swap(kept);
  for (const Task& task : cancelled) {
    --client.jobs;
    task.apply();
  }
  --client.jobs;
  ReapWhenIdle(scene, client);
}

void Join(Scene& scene, Client& client) {
  core::Caller caller = client.caller;
  const bool stranger = scene.dice.Chance(30);
  caller.process.low += stranger ? 1 : 0;
  scene.trace.BeginStep("s" + std::to_string(client.number) + " Join" + (stranger ? " by a stranger" : ""));
  Refusals why;
  why.If(stranger || client.over, ErrorReason::SESSION_NOT_FOUND);
  const auto joined = scene.world.registry.Join(client.session->id(), caller);
  scene.trace.Add(" -> " + TextOf(joined.status()));
  if (!why.Allows(joined.status())) {
    scene.findings.Report("CallsAreJudgedByTheRules", "Join answered " + TextOf(joined.status()));
  }
  client.connections += joined.ok() ? 1 : 0;
}

}  // namespace

void ReapWhenIdle(Scene& scene, Client& client) {
  if (client.ending && client.jobs == 0 && !client.over) {
    scene.model.reaper_tasks.push_back({.what = "take back t" + std::to_string(client.number),
                                        .client = &client,
                                        .apply = [&scene, &client] { ApplyTearDown(scene, client); }});
  }
}

void BeginEnd(Scene& scene, Client& client, EndCause cause) {
  if (!client.ending) {
    client.ending = true;
    client.cause = cause;
    ++client.jobs;
    scene.model.reaper_tasks.push_back({.what = "cancel the jobs of s" + std::to_string(client.number),
                                        .client = &client,
                                        .apply = [&scene, &client] { ApplyCancel(scene, client); }});
  }
}

// In the registry's order.
uint64_t BeginEndOfAll(Scene& scene, const Tenant& tenant, EndCause cause) {
  std::vector<std::shared_ptr<Client>> clients;
  for (const auto& client : scene.model.clients) {
    if (client->tenant.get() == &tenant && !client->over) {
      clients.push_back(client);
    }
  }
  std::sort(clients.begin(), clients.end(),
            [](const auto& one, const auto& other) { return one->session->id() < other->session->id(); });
  for (const auto& client : clients) {
    BeginEnd(scene, *client, cause);
  }
  return clients.size();
}

void OpenSession(Scene& scene) {
  auto client = std::make_shared<Client>();
  client->number = scene.model.NextNumber();
  client->process = std::make_shared<ManualProcess>();
  // Process numbers are even, so that the next number belongs to no process.
  client->caller = DrawCaller(scene.dice, 2 * client->number, client->process);
  const bool long_label = scene.Careless();
  const Shown shown = DrawGrant(scene);
  const std::string& pod = client->caller.container.pod_uid;
  scene.trace.BeginStep("OpenSession s" + std::to_string(client->number) + " of uid " +
                        std::to_string(client->caller.uid) + " gid " + std::to_string(client->caller.gid) +
                        (pod.empty() ? "" : " in pod " + pod.substr(pod.size() - 1)) + shown.text);
  Refusals why;
  why.If(long_label, ErrorReason::FIELD_OUT_OF_RANGE);
  if (!long_label) {
    client->tenant = scene.model.tenants.Of(client->caller, shown.secret, scene.world.clock.Now(), why);
  }
  if (client->tenant != nullptr) {
    scene.model.CheckSession(*client->tenant, why);
    why.If(scene.model.draining, ErrorReason::DAEMON_DRAINING);
  }
  auto opened =
      scene.world.registry.Open(client->caller, long_label ? std::string(65, 'x') : "simulated", shown.secret);
  scene.trace.Add(" -> " + TextOf(opened.status()));
  if (!why.Allows(opened.status())) {
    scene.findings.Report("CallsAreJudgedByTheRules",
                          "OpenSession answered " + TextOf(opened.status()) + " instead of " + why.Text());
  } else if (opened.ok()) {
    scene.trace.Add(" as " + client->tenant->name);
    client->session = *std::move(opened);
    client->limits = LimitsOfSession(scene, *client->tenant);
    client->uses_rings = scene.dice.Chance(50);
    client->rate.Set(client->tenant->limits.session_rate, scene.world.clock.Now());
    scene.model.clients.push_back(std::move(client));
  }
}

void EndSession(Scene& scene, Client& client) {
  const std::string who = "s" + std::to_string(client.number);
  core::SessionRegistry& registry = scene.world.registry;
  switch (scene.dice.Below(4)) {
    case 0: {
      scene.trace.BeginStep(who + " dies");
      client.process->exited = true;
      registry.EndAllOf(client.caller.process, EndCause::kProcessExited);
      BeginEnd(scene, client, EndCause::kProcessExited);
      return;
    }
    case 1: {
      scene.trace.BeginStep(who + " dies, its connections first");
      client.process->exited = true;
      while (client.connections > 0) {
        --client.connections;
        registry.DropConnection(client.session);
      }
      BeginEnd(scene, client, EndCause::kConnectionLost);
      return;
    }
    case 2: {
      scene.trace.BeginStep(who + " loses a connection");
      if (client.connections > 0) {
        --client.connections;
        registry.DropConnection(client.session);
        if (client.connections == 0) {
          BeginEnd(scene, client, EndCause::kConnectionLost);
        }
      }
      return;
    }
    default: {
      scene.trace.BeginStep(who + " CloseSession");
      const uint64_t callback = scene.mailbox.Reserve();
      client.end_callbacks.push_back(callback);
      registry.End(client.session, EndCause::kClosed, scene.mailbox.EndDoneFor(callback));
      if (client.over) {
        scene.mailbox.Expect(callback, Refusals());
      }
      BeginEnd(scene, client, EndCause::kClosed);
      return;
    }
  }
}

void DrainSessions(Scene& scene) {
  scene.trace.BeginStep("the daemon stops");
  scene.world.registry.Drain(EndCause::kDaemonStopping);
  scene.model.draining = true;
  // In the registry's order.
  std::vector<std::shared_ptr<Client>> clients = scene.model.clients;
  std::sort(clients.begin(), clients.end(),
            [](const auto& one, const auto& other) { return one->session->id() < other->session->id(); });
  for (const auto& client : clients) {
    BeginEnd(scene, *client, EndCause::kDaemonStopping);
  }
}

std::vector<ClientStep> SessionSteps() {
  return {{Join, [](const Client& client) -> uint64_t { return client.ending ? 0 : 1; }}};
}

}  // namespace rnicd::simulation
