#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "client/kubernetes/grant_file.h"
#include "client/kubernetes/holder.h"

namespace rnicd::kubernetes {

// A grant, and what has been seen of its devices' holders since the plugin started.
struct KeptGrant {
  GrantRecord record;
  // No look has been taken since it was made: an answer of the kubelet may be older than the grant.
  bool fresh = false;
  // For how long nobody has been seen to hold its devices; nothing while somebody does.
  std::optional<std::chrono::milliseconds> unheld;
};

struct ReviewRules {
  // GrantOptions says what they mean.
  std::chrono::milliseconds grace{0};
  std::chrono::milliseconds same_pod{0};
};

enum class Verdict : uint8_t {
  kStays,
  // Its devices have been held by nobody for `grace`.
  kUnheld,
  // Its devices have been given to another pod.
  kReplaced,
};

struct Reviewed {
  // One for each grant, in their order.
  std::vector<Verdict> verdicts;
  // A pod was noted down in a record.
  bool pods_noted = false;
};

// Compares grants, in the order in which they were made, with who holds devices now; `since_last_look` counts for the
// time that a grant is unheld. Changes what the grants remember, and revokes nothing.
Reviewed Review(std::vector<KeptGrant>& grants, std::span<const Holder> holders,
                std::chrono::milliseconds since_last_look, const ReviewRules& rules);

}  // namespace rnicd::kubernetes
