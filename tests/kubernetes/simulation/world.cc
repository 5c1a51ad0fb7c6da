#include "tests/kubernetes/simulation/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::test {
namespace {

using kubernetes::Observation;
using State = ModelContainer::State;

constexpr size_t kStepsShown = 60;
constexpr uint64_t kUnitBytes = 64 << 20;
constexpr std::chrono::seconds kReconcileInterval{10};

const kubernetes::ResourceSpec& Resource() {
  static const kubernetes::ResourceSpec resource{.name = KubeletModel::kResource, .unit_bytes = kUnitBytes};
  return resource;
}

}  // namespace

World::World(uint64_t seed, GrantCanary canary)
    : dice_(seed),
      canary_(canary),
      api_is_used_(dice_.Chance(75)),
      pods_are_shown_(seed % 4 != 0 && canary != GrantCanary::kStartsUnannounced),
      quiet_(dice_.Pick(std::vector<uint64_t>{0, 60, 90})),
      random_(seed ^ 0x5bd1e995),
      options_{.resources = {KubeletModel::kResource}},
      file_(home_.path()),
      kubelet_(dice_) {
  daemon_.SetQuirks({.ignores_revocations = canary == GrantCanary::kRevocationsIgnored,
                     .sees_no_pods = !pods_are_shown_ || canary == GrantCanary::kBindingsIgnored});
  RestartPlugin();
}

void World::Say(const std::string& kind, const std::string& text) {
  ++counts_[kind];
  last_steps_.push_back(absl::StrCat(now_.time_since_epoch() / Ms(1) - 1'800'000'000'000, " ms: ", kind, " ", text));
  if (last_steps_.size() > kStepsShown) {
    last_steps_.pop_front();
  }
}

void World::Step() {
  static constexpr struct {
    uint64_t weight;
    void (World::*step)();
  } kSteps[] = {{25, &World::Admit},         {40, &World::StartContainer}, {15, &World::EndContainer},
                {3, &World::RestartPod},     {18, &World::EndPod},         {30, &World::PassTime},
                {1, &World::RestartKubelet}, {10, &World::ConnectKubelet}, {1, &World::RestartPlugin},
                {3, &World::DisturbDaemon},  {2, &World::DisturbApi},      {15, &World::Review}};
  uint64_t all = 0;
  for (const auto& row : kSteps) {
    all += row.weight;
  }
  uint64_t drawn = dice_.Below(all);
  for (const auto& row : kSteps) {
    if (drawn < row.weight) {
      (this->*row.step)();
      break;
    }
    drawn -= row.weight;
  }
  Poll();
}

// As Plugin polls each second.
void World::Poll() {
  if (!away_ && renewal_is_due_) {
    renewal_is_due_ = !keeper_->Renew(now_).ok();
  }
  if (!observation_.has_value() && now_ >= next_observation_) {
    Observe();
  }
}

void World::PassTime() {
  now_ += Ms(dice_.Chance(15) ? dice_.Between(5'000, 20'000) : dice_.Between(1, 3'000));
  if (away_ && dice_.Chance(50)) {
    away_ = false;
    daemon_.GoAwayAfter(1'000'000'000);
    daemon_.SetAway(false);
    Say("daemon", "responds again");
  }
  if (api_is_away_ && dice_.Chance(30)) {
    api_is_away_ = false;
  }
  std::erase_if(api_pods_, [&](const auto& pod) { return !kubelet_.pods().at(pod.first).alive && dice_.Chance(60); });
}

void World::Observe() {
  Observation observation;
  kubelet_.Describe(observation);
  observation.cluster_is_away = api_is_used_ && api_is_away_;
  if (api_is_used_ && !api_is_away_) {
    observation.cluster.emplace();
    for (const auto& [uid, name] : api_pods_) {
      observation.cluster->push_back({.uid = uid, .namespace_name = "team", .name = name, .labels = {}});
    }
  }
  dead_when_observed_.clear();
  for (const auto& [uid, pod] : kubelet_.pods()) {
    if (!pod.alive && !(api_is_used_ && api_pods_.contains(uid))) {
      dead_when_observed_.insert(uid);
    }
  }
  observation_ = std::move(observation);
  Say("observe", absl::StrCat(observation_->holders.size(), " holders"));
}

// The response is as old as the steps since Observe.
void World::Review() {
  if (!observation_.has_value()) {
    return;
  }
  const Observation observation = *std::exchange(observation_, std::nullopt);
  next_observation_ = now_ + kReconcileInterval;
  const bool done =
      canary_ == GrantCanary::kReviewsSkipped || keeper_->Reconcile(kubernetes::NodeView(observation), now_).ok();
  Say("review", done ? "" : "failed");
  const Ms passed = std::min(std::chrono::duration_cast<Ms>(now_ - last_review_.value_or(now_)), options_.grace / 2);
  last_review_ = now_;
  if (!done || observation.cluster_is_away) {
    return;
  }
  for (auto& [grant, owner] : handed_out_) {
    if (dead_when_observed_.contains(owner.uid)) {
      // The keeper ignores the first review of a new grant, and the next one begins the grace.
      owner.reviewed = owner.reviewed.has_value() ? *owner.reviewed + passed : -options_.grace / 2;
    }
  }
}

ModelPod World::DrawPod() {
  ++pods_made_;
  // Some names come again, as in a StatefulSet.
  ModelPod pod{.uid = absl::StrCat("2c48913c-b29f-11e7-9350-", absl::Dec(pods_made_, absl::kZeroPad12)),
               .name = dice_.Chance(30) ? absl::StrCat("web-", dice_.Below(3)) : absl::StrCat("pod-", pods_made_),
               .containers = {}};
  const uint64_t inits = dice_.Chance(40) ? dice_.Between(1, 2) : 0;
  for (uint64_t index = 0; index < inits; ++index) {
    const bool sidecar = dice_.Chance(25);
    pod.containers.push_back({.name = absl::StrCat(sidecar ? "sidecar-" : "init-", index),
                              .is_init = !sidecar,
                              .units = static_cast<size_t>(dice_.Below(4))});
  }
  const uint64_t apps = dice_.Between(1, 2);
  for (uint64_t index = 0; index < apps; ++index) {
    pod.containers.push_back({.name = absl::StrCat("app-", index), .units = static_cast<size_t>(dice_.Below(4))});
  }
  const bool listed = std::any_of(pod.containers.begin(), pod.containers.end(),
                                  [](const ModelContainer& one) { return !one.is_init && one.units > 0; });
  if (!api_is_used_ && !listed) {
    pod.containers.back().units = 1;
  }
  return pod;
}

void World::Admit() {
  if (!kubelet_.connected() || dice_.Chance(quiet_)) {
    return;
  }
  const ModelPod pod = DrawPod();
  // Names are unique among the pods of a moment.
  for (const std::string& uid : kubelet_.LivingPods()) {
    if (kubelet_.pods().at(uid).name == pod.name) {
      return;
    }
  }
  const size_t fails_at =
      dice_.Chance(8) ? static_cast<size_t>(dice_.Below(pod.containers.size())) : pod.containers.size();
  api_pods_[pod.uid] = pod.name;
  size_t allocated = 0;
  const bool lives = kubelet_.Admit(pod, fails_at, [&](const std::vector<std::string>& ids) {
    while (pod.containers[allocated].units == 0) {
      ++allocated;
    }
    return Allocate(pod.uid, pod.containers[allocated++].name, ids);
  });
  Say("admit", absl::StrCat(pod.name, " (", pod.uid, ")", lives ? "" : ", failed"));
}

uint64_t World::Allocate(const std::string& uid, const std::string& container, const std::vector<std::string>& ids) {
  const absl::StatusOr<uint64_t> grant = keeper_->Allocate(Resource(), ids, now_);
  Say("allocate", absl::StrCat(uid, " ", container, " {", absl::StrJoin(ids, ","), "}: ", grant.value_or(0), " ",
                               grant.status().message()));
  if (!grant.ok()) {
    renewal_is_due_ = true;
    return 0;
  }
  handed_out_[*grant] = {.uid = uid, .container = container, .ids = {ids.begin(), ids.end()}, .reviewed = {}};
  return *grant;
}

bool World::PrepareStart(const ModelPod& pod, ModelContainer& container) {
  const Allocation* const allocation = kubelet_.Of(pod.uid, container.name);
  // A kubelet that lost its checkpoint does not start the container.
  if (container.units > 0 && allocation == nullptr) {
    return false;
  }
  if (allocation == nullptr || canary_ == GrantCanary::kStartsUnannounced) {
    return true;
  }
  const std::vector<std::string> ids(allocation->device_ids.begin(), allocation->device_ids.end());
  const absl::Status prepared = keeper_->Prepare(KubeletModel::kResource, ids,
                                                 PodUidOf(kubelet_.checkpoint(), KubeletModel::kResource, ids), now_);
  Say("prepare", absl::StrCat(pod.uid, " ", container.name, " ", GrantOf(*allocation), " ", prepared.message()));
  if (absl::IsFailedPrecondition(prepared)) {
    refused_start_ = absl::StrCat(pod.uid, " ", container.name);
  }
  return prepared.ok();
}

void World::MountDoor(const ModelPod& pod, ModelContainer& container) {
  const Allocation* const allocation = kubelet_.Of(pod.uid, container.name);
  container.directory = allocation == nullptr ? 0 : daemon_.DirectoryOf(GrantOf(*allocation));
}

// Init containers one after the other, then all others in any order.
void World::StartContainer() {
  const std::vector<std::string> uids = kubelet_.LivingPods();
  if (uids.empty() || !kubelet_.connected()) {
    return;
  }
  ModelPod& pod = kubelet_.pods().at(dice_.Pick(uids));
  for (ModelContainer& container : pod.containers) {
    if (container.is_init && container.state == State::kRunning) {
      return;
    }
    if (container.state == State::kWaiting) {
      if (PrepareStart(pod, container)) {
        container.state = State::kRunning;
        MountDoor(pod, container);
        Say("start", absl::StrCat(pod.uid, " ", container.name));
      }
      return;
    }
  }
}

// An init container ends; others are restarted, without the plugin while the kubelet does not know it.
void World::EndContainer() {
  const std::vector<std::string> uids = kubelet_.LivingPods();
  if (uids.empty()) {
    return;
  }
  ModelPod& pod = kubelet_.pods().at(dice_.Pick(uids));
  for (ModelContainer& container : pod.containers) {
    if (container.state != State::kRunning) {
      continue;
    }
    if (container.is_init && dice_.Chance(70)) {
      container.state = State::kDone;
    } else if (kubelet_.connected() && !PrepareStart(pod, container)) {
      container.state = State::kWaiting;
    } else {
      MountDoor(pod, container);
    }
    Say("end", absl::StrCat(pod.uid, " ", container.name));
    return;
  }
}

// A new sandbox: every container starts again, init containers first.
void World::RestartPod() {
  const std::vector<std::string> uids = kubelet_.LivingPods();
  if (uids.empty()) {
    return;
  }
  ModelPod& pod = kubelet_.pods().at(dice_.Pick(uids));
  for (ModelContainer& container : pod.containers) {
    container.state = State::kWaiting;
  }
  Say("sandbox", pod.uid);
}

void World::EndPod() {
  const std::vector<std::string> uids = kubelet_.LivingPods();
  if (uids.empty()) {
    return;
  }
  const std::string& uid = dice_.Pick(uids);
  kubelet_.End(uid);
  if (dice_.Chance(50)) {
    api_pods_.erase(uid);
  }
  Say("gone", uid);
}

void World::RestartKubelet() {
  const bool keep = !api_is_used_ || dice_.Chance(80);
  kubelet_.Restart(keep);
  Say("kubelet", keep ? "restarted" : "restarted without its checkpoint");
  for (const std::string& uid : kubelet_.LivingPods()) {
    const ModelPod& pod = kubelet_.pods().at(uid);
    const bool waits = std::any_of(pod.containers.begin(), pod.containers.end(), [](const ModelContainer& container) {
      return container.state != State::kRunning && container.units > 0;
    });
    // Admitted once more: without healthy devices only for containers that run.
    if (waits) {
      kubelet_.End(uid);
      Say("gone", uid + " was not admitted again");
    }
  }
}

void World::ConnectKubelet() {
  if (!kubelet_.connected()) {
    keeper_->KubeletConnected();
    kubelet_.Connect();
    Say("kubelet", "connected");
  }
}

void World::RestartPlugin() {
  keeper_ = std::make_unique<kubernetes::GrantKeeper>(daemon_, file_, random_, logger_, options_);
  const absl::Status loaded = keeper_->Load();
  Say("plugin", absl::StrCat("restarted ", loaded.message()));
  renewal_is_due_ = true;
  observation_.reset();
  last_review_.reset();
  for (auto& [grant, owner] : handed_out_) {
    owner.reviewed.reset();
  }
}

void World::DisturbDaemon() {
  const uint64_t kind = dice_.Below(4);
  if (kind == 0) {
    daemon_.Restart();
    renewal_is_due_ = true;
    Say("daemon", "restarted");
  } else if (kind == 1) {
    daemon_.LoseNextGrant();
    Say("daemon", "will lose a response");
  } else {
    daemon_.GoAwayAfter(static_cast<int>(dice_.Below(4)));
    away_ = true;
    Say("daemon", "will be away");
  }
}

void World::DisturbApi() {
  api_is_away_ = true;
  Say("api", "is away");
}

bool World::IsExcused(const HandedOut& owner) {
  if (!kubelet_.pods().at(owner.uid).is_lost) {
    return false;
  }
  return std::any_of(handed_out_.begin(), handed_out_.end(), [&](const auto& other) {
    return other.second.uid != owner.uid && std::any_of(owner.ids.begin(), owner.ids.end(), [&](const std::string& id) {
             return other.second.ids.contains(id);
           });
  });
}

}  // namespace rnicd::test
