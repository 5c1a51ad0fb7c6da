// Tenants: operators' actions, sweeping, and calls counted against rates.

#include <string>

#include "tests/simulation/steps/steps.h"
#include "tests/simulation/world/draw_policy.h"

namespace rnicd::simulation {
namespace {

using core::EndCause;

void CheckStatus(Scene& scene, const absl::Status& status, const Refusals& why) {
  scene.trace.Add(" -> " + TextOf(status));
  if (!why.Allows(status)) {
    scene.findings.Report("CallsAreJudgedByTheRules", "answered " + TextOf(status) + " instead of " + why.Text());
  }
}

// Sets the same rules with other limits, or entirely different rules.
void ChangePolicy(Scene& scene) {
  core::Policy policy = scene.model.tenants.policy();
  const bool only_limits = scene.dice.Chance(60);
  if (only_limits) {
    for (core::TenantRule& rule : policy.tenants) {
      rule.limits = DrawTenantLimits(scene.dice, scene.options.rates);
    }
  } else if (scene.options.own_policy) {
    policy = DrawPolicy(scene.dice, scene.options.rates);
  }
  scene.trace.BeginStep(std::string("the policy changes its ") + (only_limits ? "limits" : "rules"));
  scene.world.tenants.SetPolicy(policy);
  scene.model.tenants.SetPolicy(std::move(policy), scene.world.clock.Now());
}

void SetPods(Scene& scene) {
  const std::vector<core::PodFacts> pods = DrawPods(scene.dice);
  scene.trace.BeginStep(std::to_string(pods.size()) + " pods are known");
  scene.world.tenants.SetPods(pods);
  scene.model.tenants.SetPods(pods);
}

void CreateGrant(Scene& scene) {
  const bool careless = scene.Careless();
  const core::GrantTerms terms = DrawGrantTerms(scene.dice, scene.options.rates, careless);
  const uint64_t number = scene.model.NextNumber();
  scene.trace.BeginStep("CreateGrant " + std::to_string(number) + " named " + terms.name + " for " +
                        std::to_string(terms.lifetime.count()) + " ms" + (terms.pod_uid.empty() ? "" : " of a pod"));
  Refusals why;
  why.If(careless, ErrorReason::FIELD_OUT_OF_RANGE);
  scene.model.tenants.CheckName(terms.name, why);
  const auto issued = scene.world.tenants.CreateGrant(terms);
  CheckStatus(scene, issued.status(), why);
  if (issued.ok()) {
    scene.model.tenants.AddGrant(terms, *issued, number, scene.world.clock.Now());
  }
}

void Remember(Model& model, const Grant& grant) { model.dead_secrets.push_back(grant.secret); }

// Revokes the grant and ends its sessions.
void Revoke(Scene& scene, GrantId id) {
  Model& model = scene.model;
  const auto known = model.tenants.grants().find(id);
  const bool is_there = known != model.tenants.grants().end();
  scene.trace.BeginStep("RevokeGrant " + (is_there ? std::to_string(known->second.number) : "of nobody"));
  Refusals why;
  why.If(!is_there, ErrorReason::GRANT_NOT_FOUND);
  const auto revoked = scene.world.tenants.RevokeGrant(id);
  CheckStatus(scene, revoked.status(), why);
  if (!revoked.ok() || !is_there) {
    return;
  }
  const uint64_t ended = scene.world.registry.EndRefusedBy(**revoked, EndCause::kGrantRevoked);
  Remember(model, known->second);
  const std::shared_ptr<Tenant> tenant = model.tenants.RemoveGrant(id);
  const uint64_t should = BeginEndOfAll(scene, *tenant, EndCause::kGrantRevoked);
  if (ended != should) {
    scene.findings.Report("CallsAreJudgedByTheRules",
                          "ended " + std::to_string(ended) + " sessions instead of " + std::to_string(should));
  }
}

void RevokeGrant(Scene& scene) {
  const auto& grants = scene.model.tenants.grants();
  GrantId id{scene.dice.Next()};
  if (!grants.empty() && !scene.Careless()) {
    id = std::next(grants.begin(), static_cast<std::ptrdiff_t>(scene.dice.Below(grants.size())))->first;
  }
  Revoke(scene, id);
}

void Sweep(Scene& scene) {
  Model& model = scene.model;
  scene.trace.BeginStep("what is over is swept away");
  scene.world.registry.EndExpired();
  const Instant now = scene.world.clock.Now();
  for (const GrantId id : model.tenants.OverAt(now)) {
    Remember(model, model.tenants.grants().at(id));
    const std::shared_ptr<Tenant> tenant = model.tenants.RemoveGrant(id);
    model.decisions.push_back(TextOf(core::Decision{.what = "grant.expire", .tenant = tenant->name}));
    (void)BeginEndOfAll(scene, *tenant, EndCause::kGrantExpired);
  }
  model.tenants.Forget(now, [&model](const Tenant& tenant) {
    return std::any_of(model.clients.begin(), model.clients.end(),
                       [&tenant](const auto& client) { return client->tenant.get() == &tenant; });
  });
}

void Evict(Scene& scene) {
  std::vector<std::shared_ptr<Client>>& clients = scene.model.clients;
  const bool nobody = clients.empty() || scene.Careless();
  const std::shared_ptr<Client> client = nobody ? nullptr : scene.dice.Pick(clients);
  scene.trace.BeginStep("Evict " + (nobody ? "nobody" : "s" + std::to_string(client->number)));
  const SessionId id = nobody ? SessionId{scene.dice.Next()} : client->session->id();
  Refusals why;
  why.If(nobody || client->over, ErrorReason::SESSION_NOT_FOUND);
  const auto evicted = scene.world.registry.Evict(id);
  CheckStatus(scene, evicted.status(), why);
  if (!evicted.ok() || nobody) {
    return;
  }
  if (*evicted != client->session) {
    scene.findings.Report("CallsAreJudgedByTheRules", "another session was evicted");
  }
  BeginEnd(scene, *client, EndCause::kEvicted);
}

void Drain(Scene& scene) {
  scene.model.draining = !scene.model.draining;
  scene.trace.BeginStep(scene.model.draining ? "draining begins" : "draining ends");
  scene.world.draining.store(scene.model.draining);
}

// Counts one call against the session and its tenant, or against neither.
std::chrono::nanoseconds AskOnce(Scene& scene, Client& client) {
  const Instant now = scene.world.clock.Now();
  const std::chrono::nanoseconds own = client.rate.WaitAt(now);
  const std::chrono::nanoseconds shared = client.tenant->rate.WaitAt(now);
  const std::chrono::nanoseconds should = own.count() > 0 ? own : shared;
  Refusals why;
  why.IfAbove(own.count() > 0, ErrorReason::RATE_LIMITED, client.rate.per_second());
  why.IfAbove(own.count() == 0 && shared.count() > 0, ErrorReason::RATE_LIMITED, client.tenant->rate.per_second());
  std::chrono::nanoseconds wait{0};
  CheckStatus(scene, client.session->AdmitCall(&wait), why);
  if (wait != should) {
    scene.findings.Report("CallsAreJudgedByTheRules", "has to wait " + std::to_string(wait.count()) +
                                                          " ns instead of " + std::to_string(should.count()));
  }
  if (why.none()) {
    client.rate.Pour(now);
    client.tenant->rate.Pour(now);
  }
  return should;
}

// A call repeated 1 ns before the end of its wait is refused, and admitted at the end, unless the other rate is
// tighter.
void AskForTurn(Scene& scene, Client& client) {
  scene.trace.BeginStep("s" + std::to_string(client.number) + " asks for its turn");
  const std::chrono::nanoseconds wait = AskOnce(scene, client);
  if (wait.count() > 1 && scene.dice.Chance(25)) {
    scene.world.clock.Advance(wait - std::chrono::nanoseconds(1));
    (void)AskOnce(scene, client);
    scene.world.clock.Advance(std::chrono::nanoseconds(1));
    (void)AskOnce(scene, client);
  }
}

}  // namespace

void Operate(Scene& scene) {
  if (scene.model.draining && scene.dice.Chance(50)) {
    Drain(scene);
    return;
  }
  static constexpr struct {
    void (*run)(Scene& scene);
    uint64_t weight;
  } kSteps[] = {{ChangePolicy, 20}, {SetPods, 8}, {CreateGrant, 25}, {RevokeGrant, 12},
                {Sweep, 22},        {Evict, 6},   {Drain, 7}};
  uint64_t choice = scene.dice.Below(100);
  for (const auto& step : kSteps) {
    if (choice < step.weight) {
      step.run(scene);
      return;
    }
    choice -= step.weight;
  }
}

void ForgetTenants(Scene& scene) {
  scene.world.clock.Advance(std::chrono::hours(1));
  Sweep(scene);
  while (!scene.model.tenants.grants().empty()) {
    Revoke(scene, scene.model.tenants.grants().begin()->first);
  }
}

std::vector<ClientStep> RateSteps() {
  return {{AskForTurn, [](const Client& client) -> uint64_t {
             return client.rate.limited() || client.tenant->rate.limited() ? 30 : 1;
           }}};
}

}  // namespace rnicd::simulation
