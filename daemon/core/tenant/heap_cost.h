#pragma once

#include <cstddef>
#include <cstdint>

#include "daemon/core/tenant/ledger.h"

// Estimates of the daemon's own memory behind each charge: what Resource::kHeapBytes counts. A client chooses how many
// objects the daemon keeps for it, so all of it is charged before it is allocated. Each figure is a little above the
// most that heap_cost_test.cc measures with the soft provider, slack of vectors and of the allocator included; a card's
// library keeps rings for queues, which the figures for entries have room for. What a call needs only while it runs is
// not counted here: transport and gate bound it, for each connection.
namespace rnicd::core {

struct HeapCost {
  uint64_t bytes = 0;
  // Amount of the resource that costs this much.
  uint64_t of = 1;
};

// Bytes for `of` of the resource; nothing where the memory is the client's or the kernel's, or counted elsewhere.
constexpr HeapCost HeapCostOf(Resource resource) {
  switch (resource) {
    case Resource::kSessions:
      return {8192};
    case Resource::kAdapters:
      return {1536};
    case Resource::kProtectionDomains:
      return {1024};
    // With the counts of its first pages, for the session and the tenant, and its ticket.
    case Resource::kMemoryObjects:
      return {8192};
    // Counts of pages (PageTree): 4.4 bytes a page for the session, and as much for the tenant.
    case Resource::kMemoryBytes:
      return {9, 4096};
    // Registered, or with a live fast registration, apart from the list of its pieces.
    // NOLINTNEXTLINE(bugprone-branch-clone): a table, in which two rows happen to be equal.
    case Resource::kRegions:
      return {2048};
    // A request, its completion in the event queue, and the timer of a poll that waits.
    case Resource::kPendingRequests:
      return {2048};
    // Apart from its page list.
    case Resource::kLogicalMappings:
      return {1024};
    // One address in the page list.
    case Resource::kLogicalPages:
      return {8};
    case Resource::kCompletionQueues:
      return {1536};
    // A completion, and an entry of the card's ring.
    case Resource::kCqEntries:
      return {128};
    case Resource::kQueuePairs:
      return {3072};
    // A posted request, with a short scatter-gather list or some inline data (provider::kInlineEntries).
    case Resource::kQueueEntries:
      return {528};
    case Resource::kWindows:
      return {1024};
    // With its tickets; its shared memory is charged apart.
    case Resource::kRings:
      return {3072};
    // With its name and address.
    case Resource::kListeners:
      return {2048};
    // With its addresses, private data of both sides, and its timer.
    case Resource::kConnectors:
      return {3072};
    case Resource::kFastRegisterPages:
    case Resource::kPostedPages:
    case Resource::kPinnedBytes:
    case Resource::kRegisteredBytes:
    case Resource::kHeapBytes:
    case Resource::kLingeringBytes:
      return {};
  }
  return {};
}

// Additive for multiples of `of`, so that a charge may be refunded in parts.
constexpr uint64_t HeapCostOf(Resource resource, uint64_t amount) {
  const HeapCost cost = HeapCostOf(resource);
  return amount / cost.of * cost.bytes;
}

// A piece of memory that a registration or mapping consists of: its address and length in this process, its pages in
// the file, and the same once more in the soft card, or what the verbs provider notes of a mapping's piece and of the
// block that it keeps pinned. A range in one piece of memory has one.
inline constexpr uint64_t kHeapOfRun = 192;
// A piece of memory of a posted request or live fast registration, or a mapping that it keeps: also one that was
// released meanwhile, and no longer counts as a mapping.
inline constexpr uint64_t kHeapOfPostedPiece = 128;
// A mapped completion queue, apart from kCompletionQueues and its shared memory: its two ends of what is shared, its
// tickets, and the record of its memory while that lingers.
inline constexpr uint64_t kHeapOfMappedQueue = 1536;
// An entry of a scatter-gather list that a queue pair has room for. Lists that are not short grow to twice what they
// hold, and a card may keep its own list.
inline constexpr uint64_t kHeapOfListEntry = 80;

}  // namespace rnicd::core
