#pragma once

#include <optional>
#include <span>

#include "tests/simulation/model/scene.h"

// Requests of a client that go through its ring where it has one with room for them, and are calls to core otherwise.
namespace rnicd::simulation {

absl::StatusOr<PostOutcome> PostEitherWay(Scene& scene, Client& client, const core::SessionGuard& session,
                                          QueuePairId id, std::span<const WorkRequest> chain);
// Nothing through the ring, where only completions say what came of it; `whole`: why the daemon refuses all of it.
std::optional<absl::StatusOr<PostOutcome>> PostWithoutOutcomeEitherWay(Scene& scene, Client& client,
                                                                       const core::SessionGuard& session,
                                                                       QueuePairId id,
                                                                       std::span<const WorkRequest> chain,
                                                                       const absl::Status& whole);
absl::StatusOr<RemoteToken> GetRemoteTokenEitherWay(Scene& scene, Client& client, const core::SessionGuard& session,
                                                    MemoryRegionId id);
absl::Status ArmEitherWay(Scene& scene, Client& client, const core::SessionGuard& session, CompletionQueueId id,
                          CqNotifyType type);
// A request that pends in a ring completes through its callback: `plan` then says so.
core::MaybePending<Registration> RegisterEitherWay(Scene& scene, Client& client, const core::SessionGuard& session,
                                                   const core::RegisterArguments& arguments, ReportPlan& plan);
core::MaybePending<> DeregisterEitherWay(Scene& scene, Client& client, const core::SessionGuard& session,
                                         MemoryRegionId id, ReportPlan& plan);

// After a job: reads the outcomes of requests that pended.
void ReadLateOutcomes(Scene& scene);

}  // namespace rnicd::simulation
