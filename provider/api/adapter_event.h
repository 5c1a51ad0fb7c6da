#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace rnicd::provider {

enum class AdapterEventKind : uint8_t {
  kPortUp,
  kPortDown,
  kAddressChanged,
  // A card or port appeared and is in ListAdapters now.
  kAdded,
  // The adapter is not in ListAdapters any more; what is open stays open until its owner lets go. The card does not
  // come back under this adapter.
  kRemoved,
  // A card or port cannot be used, so it is no adapter. Reported once.
  kLeftOut,
};
inline constexpr AdapterEventKind kAllAdapterEventKinds[] = {
    AdapterEventKind::kPortUp, AdapterEventKind::kPortDown, AdapterEventKind::kAddressChanged,
    AdapterEventKind::kAdded,  AdapterEventKind::kRemoved,  AdapterEventKind::kLeftOut};

// Name in the log, and value of a metric's label.
constexpr std::string_view AdapterEventName(AdapterEventKind kind) {
  switch (kind) {
    case AdapterEventKind::kPortUp:
      return "port up";
    case AdapterEventKind::kPortDown:
      return "port down";
    case AdapterEventKind::kAddressChanged:
      return "address changed";
    case AdapterEventKind::kAdded:
      return "added";
    case AdapterEventKind::kRemoved:
      return "removed";
    case AdapterEventKind::kLeftOut:
      return "left out";
  }
  return "unknown";
}

// An event of a card that no call asked for.
struct AdapterEvent {
  // Name of the adapter; for kLeftOut name and reason, as in "mlx5_0: not in --verbs_devices".
  std::string adapter;
  AdapterEventKind kind = AdapterEventKind::kPortUp;
};

// Given to a provider when it is created; what it refers to outlives the provider. One without events never calls it.
// Threads: called on the creating thread until the provider exists, and on threads of the provider, maybe at once; one
// call at a time.
// Must be quick and must not call the provider.
using AdapterEventListener = std::function<void(const AdapterEvent&)>;

// For a caller that does not handle events.
inline void IgnoreAdapterEvents(const AdapterEvent& /*event*/) {}

}  // namespace rnicd::provider
