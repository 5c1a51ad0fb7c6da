#pragma once

#include <memory>
#include <vector>

#include "tests/simulation/scene.h"

namespace rnicd::simulation {

// Each step does one thing to core and the same to the model, and compares what came of it. What a step leaves for
// later is a task of the model beside core's job.

// What a client asks of its session.
struct ClientStep {
  void (*run)(Scene& scene, Tenant& tenant);
  // How often, against the others; 0 when there is nothing to do it with.
  uint64_t (*weight)(const Tenant& tenant);
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

// What happens around the clients.
void OpenSession(Scene& scene);
void EndSession(Scene& scene, Tenant& tenant);
void FetchEvent(Scene& scene, Tenant& tenant);
void RunWorkerJob(Scene& scene);
void RunReaperJob(Scene& scene);
void RunCardJob(Scene& scene);
void PlanFault(Scene& scene);
void PassTime(Scene& scene);
// The daemon stops: every session is ended, and no other can be opened.
void DrainSessions(Scene& scene);
// After every core call of a step: the completions go to their queues in the order in which they came.
void DeliverCompletions(Scene& scene);
// Makes the last step of a tenant's session happen in the model, once it is ending and nothing holds it any more.
void ReapWhenIdle(Scene& scene, Tenant& tenant);

}  // namespace rnicd::simulation
