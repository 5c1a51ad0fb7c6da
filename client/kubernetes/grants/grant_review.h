#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "client/kubernetes/grants/grant_file.h"
#include "client/kubernetes/grants/node_view.h"

namespace rnicd::kubernetes {

// A grant, and what this process knows of it beyond the file.
struct KeptGrant {
  GrantRecord record;
  // True until the first review after the grant was created or allocated again: the observation may be older.
  bool fresh = false;
  // How long the grant's pod has been gone; empty while it lives.
  std::optional<std::chrono::milliseconds> unheld;
  // The running kubelet allocated the devices or named the container: it gives them to nobody else while that runs.
  bool is_known_to_kubelet = false;
  // The node offers none of the devices any more, so the daemon does not have the grant.
  bool is_withheld = false;
  // No container can have started with the grant. Until one can, its door may be given to another pod, so the grant is
  // bound to none.
  bool is_unused = false;
  // The daemon has bound the grant to a pod.
  bool is_bound = false;
};

enum class Verdict : uint8_t {
  kKeep,
  // Its pod has been gone for the grace.
  kUnheld,
  // Its pod is gone and its devices belong to another pod.
  kReplaced,
};

struct ReviewResult {
  // One verdict for each grant, in the order of the grants.
  std::vector<Verdict> verdicts;
  // A pod was written into a record.
  bool pods_recorded = false;
};

struct ReviewOptions {
  // Added to the time that a grant's pod has been gone.
  std::chrono::milliseconds since_last_review{0};
  std::chrono::milliseconds grace{0};
  // The observation is of the running kubelet, not of the one before it.
  bool is_of_running_kubelet = true;
};

// Compares grants with an observation. Updates the state kept with the grants, and revokes nothing.
ReviewResult Review(std::vector<KeptGrant>& grants, const NodeView& view, const ReviewOptions& options);

}  // namespace rnicd::kubernetes
