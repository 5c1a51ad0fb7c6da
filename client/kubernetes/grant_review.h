#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "client/kubernetes/grant_file.h"
#include "client/kubernetes/holder.h"

namespace rnicd::kubernetes {

// A grant, and what the plugin has learned about its devices' holders since it started.
struct KeptGrant {
  GrantRecord record;
  // True until the first review after the grant was created: the kubelet's response may be older than the grant.
  bool fresh = false;
  // How long the grant's devices have had no holder; empty while they have one.
  std::optional<std::chrono::milliseconds> unheld;
};

struct ReviewRules {
  // See GrantOptions.
  std::chrono::milliseconds grace{0};
  std::chrono::milliseconds same_pod{0};
};

enum class Verdict : uint8_t {
  kKeep,
  // Its devices have had no holder for `grace`.
  kUnheld,
  // Its devices have been allocated to another pod.
  kReplaced,
};

struct ReviewResult {
  // One verdict for each grant, in the order of the grants.
  std::vector<Verdict> verdicts;
  // A pod was written into a record.
  bool pods_recorded = false;
};

// Compares grants, in order of creation, with the current holders of devices; `since_last_review` is added to the time
// that a grant has been without a holder. Updates the state kept with the grants, and revokes nothing.
ReviewResult Review(std::vector<KeptGrant>& grants, std::span<const Holder> holders,
                    std::chrono::milliseconds since_last_review, const ReviewRules& rules);

}  // namespace rnicd::kubernetes
