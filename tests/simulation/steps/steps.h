#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "tests/simulation/model/scene.h"

namespace rnicd::simulation {

// Each step does one thing to core and the same to the model, and compares the results. For each job that core queues
// the model queues a task.

// A call of a client to its session.
struct ClientStep {
  void (*run)(Scene& scene, Client& client);
  // Relative frequency; 0 if the client has no object to do it with.
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
// Calls counted against rate limits.
std::vector<ClientStep> RateSteps();
std::vector<ClientStep> RingSteps();

// Adds the refusal of a call for which the daemon cannot have a file to share, if a fault is planned.
void SharedFileMayFail(Scene& scene, Refusals& why);
// The client uses the tickets of what it shares with the daemon at once. Returns the file.
UniqueFd RedeemShared(Scene& scene, const Client& client, std::initializer_list<core::FdTicket> tickets,
                      absl::StatusOr<UniqueFd> file);

// Steps that are not calls of a client.
void OpenSession(Scene& scene);
void EndSession(Scene& scene, Client& client);
void FetchEvent(Scene& scene, Client& client);
void RunWorkerJob(Scene& scene);
void RunReaperJob(Scene& scene);
void RunCardJob(Scene& scene);
void PlanFault(Scene& scene);
void PassTime(Scene& scene);
// Operator's actions: policies, pods, grants, draining, eviction; and periodic sweeping.
void Operate(Scene& scene);
// Lets a long time pass and revokes the last grants, so that no tenant is left.
void ForgetTenants(Scene& scene);
// Ends the session unless it is already ending.
void BeginEnd(Scene& scene, Client& client, core::EndCause cause);
// Ends all sessions of a tenant. Returns their number.
uint64_t BeginEndOfAll(Scene& scene, const Tenant& tenant, core::EndCause cause);
// Stops the daemon: every session is ended, and no new one can be opened.
void DrainSessions(Scene& scene);
// Called after every core call of a step: moves the completions to their queues in order of arrival.
void DeliverCompletions(Scene& scene);
// Within a step: moves as many as the model has due by now. Those behind them come of what the step does next.
void DeliverDueCompletions(Scene& scene);
// Applies the end of a session to the model once it is ending and nothing holds it.
void ReapWhenIdle(Scene& scene, Client& client);

}  // namespace rnicd::simulation
