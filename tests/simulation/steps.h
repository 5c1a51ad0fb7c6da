#pragma once

#include <memory>
#include <vector>

#include "tests/simulation/scene.h"

namespace rnicd::simulation {

// Each step does one thing to core and the same to the model, and compares what came of it. What a step leaves for
// later is a task of the model beside core's job.

// What a client asks of its session.
struct ClientStep {
  void (*run)(Scene& scene, Client& client);
  // How often, against the others; 0 when there is nothing to do it with.
  uint64_t (*weight)(const Client& client);
};
std::vector<ClientStep> SessionSteps();
std::vector<ClientStep> AdapterSteps();
std::vector<ClientStep> MemorySteps();
std::vector<ClientStep> RegionSteps();
std::vector<ClientStep> MappingSteps();
std::vector<ClientStep> CompletionSteps();
std::vector<ClientStep> PairSteps();
std::vector<ClientStep> PostSteps();
std::vector<ClientStep> EventSteps();
// Calls that are counted.
std::vector<ClientStep> RateSteps();

// What happens around the clients.
void OpenSession(Scene& scene);
void EndSession(Scene& scene, Client& client);
void FetchEvent(Scene& scene, Client& client);
void RunWorkerJob(Scene& scene);
void RunReaperJob(Scene& scene);
void RunCardJob(Scene& scene);
void PlanFault(Scene& scene);
void PassTime(Scene& scene);
// What an operator does: policies, pods, grants, draining, eviction; and what is swept away now and then.
void Operate(Scene& scene);
// A long time passes and the last grants are revoked, so that no tenant is left.
void ForgetTenants(Scene& scene);
// The session ends, unless it does already.
void BeginEnd(Scene& scene, Client& client, core::EndCause cause);
// Ends all sessions of a tenant. Answers how many there were.
uint64_t BeginEndOfAll(Scene& scene, const Tenant& tenant, core::EndCause cause);
// The daemon stops: every session is ended, and no other can be opened.
void DrainSessions(Scene& scene);
// After every core call of a step: the completions go to their queues in the order in which they came.
void DeliverCompletions(Scene& scene);
// Makes the last step of a client's session happen in the model, once it is ending and nothing holds it any more.
void ReapWhenIdle(Scene& scene, Client& client);

}  // namespace rnicd::simulation
