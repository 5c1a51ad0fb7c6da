#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/kubernetes/grants/fake_daemon_test.h"
#include "client/kubernetes/grants/grant_keeper.h"
#include "tests/kubernetes/simulation/kubelet_model.h"
#include "tests/simulation/world/dice.h"
#include "tests/support/process/temp_dir.h"

namespace rnicd::test {

enum class GrantCanary { kNone, kRevocationsIgnored, kStartsUnannounced, kReviewsSkipped, kBindingsIgnored };

// A grant whose door was returned to the kubelet.
struct HandedOut {
  std::string uid;
  std::string container;
  std::set<std::string> ids;
  // Time of successful reviews since the pod's end; empty while the pod lives, and before the first of them.
  std::optional<std::chrono::milliseconds> reviewed;
};

// A node: what GrantKeeper sees of it, and what the models know.
// Threads: one.
class World {
 public:
  using Ms = std::chrono::milliseconds;

  World(uint64_t seed, GrantCanary canary);

  // Does one step that the seed chooses.
  void Step();

  KubeletModel& kubelet() { return kubelet_; }
  const kubernetes::FakeDaemon& daemon() const { return daemon_; }
  const kubernetes::GrantKeeper& keeper() const { return *keeper_; }
  // Keyed by the grant's id. A door that is returned again belongs to its last container.
  const std::map<uint64_t, HandedOut>& handed_out() const { return handed_out_; }
  const kubernetes::GrantOptions& options() const { return options_; }
  // The daemon responds and has had its grants renewed.
  bool daemon_is_ready() const { return !away_ && !renewal_is_due_; }
  bool api_is_used() const { return api_is_used_; }
  // The kernel shows the daemon processes in pods.
  bool pods_are_shown() const { return pods_are_shown_; }
  // Containers that may have lost their grant, because a kubelet without its checkpoint allocated their devices again.
  bool IsExcused(const HandedOut& owner);
  // A failure that no invariant over the state shows; empty if there was none.
  const std::string& refused_start() const { return refused_start_; }
  const std::deque<std::string>& last_steps() const { return last_steps_; }
  // Number of calls of each kind.
  const std::map<std::string, uint64_t>& counts() const { return counts_; }

 private:
  void Say(const std::string& kind, const std::string& text);
  void Poll();
  void PassTime();
  void Observe();
  void Review();
  void Admit();
  ModelPod DrawPod();
  uint64_t Allocate(const std::string& uid, const std::string& container, const std::vector<std::string>& ids);
  void StartContainer();
  void EndContainer();
  void RestartPod();
  void EndPod();
  void RestartKubelet();
  void ConnectKubelet();
  void RestartPlugin();
  void DisturbDaemon();
  void DisturbApi();
  bool PrepareStart(const ModelPod& pod, ModelContainer& container);
  void MountDoor(const ModelPod& pod, ModelContainer& container);

  simulation::Dice dice_;
  const GrantCanary canary_;
  const bool api_is_used_;
  // Decided by the seed and not drawn, so that kept seeds keep their meaning.
  const bool pods_are_shown_;
  // Percentage of pods that are left out: on a quiet node devices are not allocated again before their grace ends.
  const uint64_t quiet_;
  const TempDir home_;
  const log::Logger logger_{{.level = log::Level::kError}};
  simulation::SeededRandom random_;
  kubernetes::GrantOptions options_;
  kubernetes::FakeDaemon daemon_;
  kubernetes::GrantFile file_;
  std::unique_ptr<kubernetes::GrantKeeper> keeper_;
  KubeletModel kubelet_;
  kubernetes::WallTime now_{std::chrono::seconds(1'800'000'000)};
  kubernetes::WallTime next_observation_ = now_;
  std::optional<kubernetes::Observation> observation_;
  // Dead pods at the time of the observation.
  std::set<std::string> dead_when_observed_;
  std::optional<kubernetes::WallTime> last_review_;
  bool away_ = false;
  bool renewal_is_due_ = true;
  bool api_is_away_ = false;
  // Pods by the API server, which learns of an end late.
  std::map<std::string, std::string> api_pods_;
  uint64_t pods_made_ = 0;
  std::map<uint64_t, HandedOut> handed_out_;
  std::string refused_start_;
  std::deque<std::string> last_steps_;
  std::map<std::string, uint64_t> counts_;
};

}  // namespace rnicd::test
