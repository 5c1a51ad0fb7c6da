#include "tests/simulation/episode.h"

#include <memory>
#include <numeric>
#include <vector>

#include "tests/simulation/invariants.h"
#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

std::vector<ClientStep> AllClientSteps() {
  std::vector<ClientStep> all;
  for (const auto& steps : {SessionSteps(), AdapterSteps(), MemorySteps(), RegionSteps(), MappingSteps(),
                            CompletionSteps(), PairSteps(), PostSteps(), EventSteps(), RateSteps(), RingSteps()}) {
    all.insert(all.end(), steps.begin(), steps.end());
  }
  return all;
}

class Episode {
 public:
  Episode(uint64_t seed, Canary canary, Trace& trace, Findings& findings)
      : dice_(seed),
        options_(DrawOptions(dice_)),
        world_(options_, dice_.Next(), canary),
        faults_(world_.plan, world_.os),
        model_(world_.node.limits, options_.policy, faults_, mailbox_),
        card_(options_.soft.read_delay.count() > 0),
        scene_{.world = world_,
               .options = options_,
               .model = model_,
               .card = card_,
               .mailbox = mailbox_,
               .dice = dice_,
               .trace = trace,
               .findings = findings} {
    for (uint32_t index = 0; index < options_.soft.adapters; ++index) {
      auto nic = std::make_unique<Nic>();
      nic->flags = options_.soft.adapter_flags;
      nic->max_keys = options_.soft.max_regions;
      model_.nics.push_back(std::move(nic));
    }
  }

  uint64_t Run(const EpisodeLimits& limits) {
    const uint64_t first = scene_.trace.steps();
    while (Goes() && scene_.trace.steps() - first < limits.steps && world_.observer.opened < limits.sessions) {
      Step();
      After();
    }
    WindDown();
    return world_.observer.opened;
  }

 private:
  bool Goes() const { return !scene_.findings.any(); }

  void After() {
    CheckInvariants(scene_);
    scene_.trace.Add(" pinned " + std::to_string(world_.node.ledger->used(core::Resource::kPinnedBytes)));
    scene_.trace.EndStep();
  }

  std::vector<std::shared_ptr<Client>> ClientsThatAre(bool over) const {
    std::vector<std::shared_ptr<Client>> found;
    for (const auto& client : model_.clients) {
      if (client->over == over) {
        found.push_back(client);
      }
    }
    return found;
  }

  void Step() {
    if (dice_.Chance(model_.draining ? 8 : 2)) {
      Operate(scene_);
      return;
    }
    const auto alive = ClientsThatAre(false);
    if (alive.empty() || (alive.size() < options_.sessions && dice_.Chance(10))) {
      OpenSession(scene_);
      return;
    }
    const uint64_t choice = dice_.Below(1000);
    if (choice < 8) {
      EndSession(scene_, *dice_.Pick(model_.clients));
    } else if (choice < 16) {
      PlanFault(scene_);
    } else if (choice < 22) {
      PassTime(scene_);
    } else if (choice < 150 && !model_.worker_tasks.empty()) {
      RunWorkerJob(scene_);
    } else if (choice < 220 && !model_.reaper_tasks.empty()) {
      RunReaperJob(scene_);
    } else if (choice < 300 && !card_.landings.empty()) {
      RunCardJob(scene_);
    } else if (choice < 330 && alive.size() < model_.clients.size()) {
      HearOut(*dice_.Pick(ClientsThatAre(true)));
    } else {
      const std::shared_ptr<Client>& client = dice_.Pick(alive);
      // An ending session only refuses calls; testing that occasionally is enough.
      ClientCall(client->ending ? *dice_.Pick(alive) : *client);
    }
  }

  void ClientCall(Client& client) {
    std::vector<uint64_t> weights;
    for (const ClientStep& step : steps_) {
      weights.push_back(step.weight(client));
    }
    uint64_t choice = dice_.Below(std::accumulate(weights.begin(), weights.end(), uint64_t{0}));
    for (size_t index = 0; index < steps_.size(); ++index) {
      if (choice < weights[index]) {
        steps_[index].run(scene_, client);
        return;
      }
      choice -= weights[index];
    }
  }

  // Fetches the last events of an ended session, which is then forgotten.
  void HearOut(Client& client) {
    FetchEvent(scene_, client);
    if (client.session->events().Drained()) {
      std::erase_if(model_.clients, [&client](const auto& each) { return each.get() == &client; });
    }
  }

  void WindDown() {
    if (Goes()) {
      DrainSessions(scene_);
      After();
    }
    if (Goes()) {
      OpenSession(scene_);
      After();
    }
    while (Goes() && !(model_.worker_tasks.empty() && model_.reaper_tasks.empty() && card_.landings.empty())) {
      if (!model_.worker_tasks.empty()) {
        RunWorkerJob(scene_);
      } else if (!model_.reaper_tasks.empty()) {
        RunReaperJob(scene_);
      } else {
        RunCardJob(scene_);
      }
      After();
    }
    while (Goes() && !model_.clients.empty()) {
      HearOut(*model_.clients.front());
      After();
    }
    if (Goes()) {
      ForgetTenants(scene_);
      After();
    }
    if (Goes()) {
      NothingIsLeft(scene_);
    }
  }

  Dice dice_;
  const EpisodeOptions options_;
  World world_;
  Faults faults_;
  Mailbox mailbox_;
  Model model_;
  Card card_;
  const std::vector<ClientStep> steps_ = AllClientSteps();
  Scene scene_;
};

}  // namespace

uint64_t RunEpisode(uint64_t seed, const EpisodeLimits& limits, Canary canary, Trace& trace, Findings& findings) {
  auto episode = std::make_unique<Episode>(seed, canary, trace, findings);
  const uint64_t sessions = episode->Run(limits);
  if (findings.any()) {
    // A world that broke an invariant cannot be torn down in order; the process ends anyway.
    (void)episode.release();
  }
  return sessions;
}

}  // namespace rnicd::simulation
