// Steps that are not calls of a client: queued jobs, reads that land, planned failures, time.

#include <algorithm>
#include <string>

#include "tests/simulation/steps/by_ring.h"
#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

// Runs one of the jobs, and its task after it. Core posts a job whenever the model adds a task, in the same order.
Task RunOne(Scene& scene, ManualJobs& jobs, std::vector<Task>& tasks) {
  const auto index = static_cast<size_t>(scene.dice.Below(tasks.size()));
  Task task = std::move(tasks[index]);
  tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(index));
  scene.trace.BeginStep("job: " + task.what);
  jobs.Run(index);
  ReadLateOutcomes(scene);
  return task;
}

}  // namespace

void RunWorkerJob(Scene& scene) {
  const Task task = RunOne(scene, scene.world.workers.jobs, scene.model.worker_tasks);
  --task.client->jobs;
  task.apply();
  ReapWhenIdle(scene, *task.client);
}

void RunReaperJob(Scene& scene) {
  const Task task = RunOne(scene, scene.world.reapers.jobs, scene.model.reaper_tasks);
  task.apply();
}

void RunCardJob(Scene& scene) {
  std::vector<Landing>& landings = scene.card.landings;
  const auto index = static_cast<size_t>(scene.dice.Below(landings.size()));
  const Landing landing = landings[index];
  landings.erase(landings.begin() + static_cast<std::ptrdiff_t>(index));
  const std::shared_ptr<QueuePair> pair = landing.pair.lock();
  scene.trace.BeginStep("read " + std::to_string(landing.serial) + " of " + Name("qp", pair, 0) + " lands");
  scene.world.engine().jobs.Run(index);
  scene.card.Land(landing);
}

void PlanFault(Scene& scene) {
  const auto fault = static_cast<Fault>(scene.dice.Below(kFaults));
  const ErrorReason reason = Faults::ReasonFor(fault, scene.dice.Next());
  const uint64_t count = scene.dice.Between(1, 2);
  scene.trace.BeginStep("fault " + std::to_string(static_cast<int>(fault)) + " is planned, times " +
                        std::to_string(count));
  scene.model.faults.Plan(fault, reason, count);
}

void PassTime(Scene& scene) {
  const std::chrono::milliseconds by(scene.dice.Between(1, 700));
  scene.trace.BeginStep(std::to_string(by.count()) + " ms pass");
  scene.world.clock.Advance(by);
}

}  // namespace rnicd::simulation
