#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/kubernetes/grants/node_view.h"
#include "tests/kubernetes/kubelet/device_book.h"
#include "tests/simulation/world/dice.h"

namespace rnicd::test {

struct ModelContainer {
  enum class State { kWaiting, kRunning, kDone };

  std::string name;
  // An ordinary init container ends before the next container starts; a sidecar is not one.
  bool is_init = false;
  size_t units = 0;
  State state = State::kWaiting;
  // Number of the directory that was mounted as its door when it started; 0 for none.
  uint64_t directory = 0;
};

struct ModelPod {
  std::string uid;
  std::string name;
  // In order of their start.
  std::vector<ModelContainer> containers;
  bool alive = true;
  // The kubelet lost its checkpoint while the pod was running, and knows nothing of its devices.
  bool is_lost = false;
};

// Id of the grant whose door the container mounts.
inline uint64_t GrantOf(const Allocation& allocation) { return std::stoull(allocation.answer.mounts(0).host_path()); }

// Devices and pods as the kubelet sees them. Errors of the plugin fail the pod.
// Threads: one.
class KubeletModel {
 public:
  static constexpr size_t kUnits = 12;
  static constexpr char kResource[] = "rnicd.io/memory-64mi";

  // Returns the id of the grant; 0 for a failure.
  using Allocate = std::function<uint64_t(const std::vector<std::string>& ids)>;

  explicit KubeletModel(simulation::Dice& dice) : dice_(dice) {}

  // Admits the pod: allocates for one container after the other. `fails_at` is the container whose allocation fails
  // for a reason outside of the plugin; the number of containers for none. Returns whether the pod lives.
  bool Admit(ModelPod pod, size_t fails_at, const Allocate& allocate);
  // The pod's containers have ended.
  void End(const std::string& uid);
  // Restarts with the checkpoint, or without.
  void Restart(bool keep_checkpoint);
  // The plugin has registered.
  void Connect() { connected_ = true; }
  bool connected() const { return connected_; }

  std::map<std::string, ModelPod>& pods() { return pods_; }
  std::vector<std::string> LivingPods() const;
  // The container's allocation; null if it has none.
  const Allocation* Of(const std::string& uid, const std::string& container) const;

  // Pod resources and checkpoint.
  void Describe(kubernetes::Observation& observation);
  std::vector<kubernetes::CheckpointEntry> checkpoint() const;

 private:
  void DropDeadPods();
  std::set<std::string> Choose(size_t units, const std::set<std::string>& reusable);

  simulation::Dice& dice_;
  bool connected_ = true;
  std::map<std::string, ModelPod> pods_;
  // In memory, and on disk.
  DeviceBook book_;
  std::string checkpoint_ = book_.ToCheckpoint();
};

}  // namespace rnicd::test
