#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "daemon/core/request/address_book.h"
#include "daemon/core/request/node.h"
#include "daemon/core/session/session_registry.h"

namespace rnicd::core {

// Every caller is admitted, and each uid is a tenant with these limits, that may listen at every dynamic port and reach
// nobody else.
inline Policy OneTenantForEachUid(const Limits& limits) {
  Policy policy;
  policy.tenants.push_back({.name = "uid", .sharing = Sharing::kEachUid, .limits = {.tenant = limits}});
  policy.tenants.front().limits.connections.listen = {
      {.prefix = *IpPrefix::FromText("::/0"), .first_port = kFirstDynamicPort}};
  policy.default_tenant = "uid";
  return policy;
}

// What a test chooses of a node. The references outlive the WiredNode.
struct NodeParts {
  Os& os;
  const Clock& clock;
  RandomSource& random;
  provider::Provider& provider;
  Observer& observer;
  Executor& workers;
  Executor& reapers;
  NodeLimits limits;
  Policy policy = OneTenantForEachUid(Limits{});
  std::chrono::milliseconds ticket_lifetime{30000};
  size_t most_named = kNamedTenants;
  // Null: the kernel's.
  FileWatch* watch = nullptr;
  // Null: calls that a client can block run inline.
  BlockingExecutor* blocking = nullptr;
};

// Ignores every event.
class NullObserver final : public Observer {
 public:
  void Observe(const Observation& /*observation*/) override {}
};

// Runs each call at once on the caller's thread. For tests without threads.
class InlineBlockingExecutor final : public BlockingExecutor {
 public:
  Started Start(const std::string& /*owner*/, Job blocking, Job /*after*/) override {
    blocking();
    return Started::kRan;
  }
};

// A node wired as the daemon wires it, and its registry. For unit tests, fuzzers, the simulation and benchmarks: it
// needs no test framework.
// Lifetime: threads that work for the node are joined before it goes.
class WiredNode {
 public:
  explicit WiredNode(NodeParts parts)
      : kernel_watch(*NewFileWatch()),
        lingering(parts.watch == nullptr ? *kernel_watch : *parts.watch),
        alarms(parts.clock),
        tickets(parts.random, parts.clock, parts.ticket_lifetime),
        ledger(std::make_shared<Ledger>(parts.limits.node, nullptr)),
        addresses(parts.random),
        tenants(std::move(parts.policy), ledger, parts.random, parts.clock, parts.most_named),
        node{.os = parts.os,
             .clock = parts.clock,
             .random = parts.random,
             .provider = parts.provider,
             .observer = parts.observer,
             .workers = parts.workers,
             .populators = parts.workers,
             .fd_workers = parts.workers,
             .reapers = parts.reapers,
             .blocking = parts.blocking == nullptr ? inline_blocking : *parts.blocking,
             .alarms = alarms,
             .tickets = tickets,
             .lingering = lingering,
             .tenants = tenants,
             .addresses = addresses,
             .draining = draining,
             .limits = parts.limits,
             .ledger = ledger,
             .started = parts.clock.Now()},
        registry(node) {}

  const std::unique_ptr<FileWatch> kernel_watch;
  InlineBlockingExecutor inline_blocking;
  LingeringMemory lingering;
  // Without its thread: RunDue runs what is due.
  Alarms alarms;
  TicketTable tickets;
  const std::shared_ptr<Ledger> ledger;
  AddressBook addresses;
  TenantDirectory tenants;
  std::atomic<bool> draining{false};
  Node node;
  SessionRegistry registry;
};

// What the ledger counts, as "regions=1 pinned_bytes=4096 "; empty when nothing is held. Heap bytes follow from the
// other counts, and are left out where there are some.
inline std::string HeldBy(const Ledger& ledger) {
  std::string held;
  for (size_t index = 0; index < kResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    if (resource != Resource::kHeapBytes && ledger.used(resource) != 0) {
      held += std::string(ResourceName(resource)) + "=" + std::to_string(ledger.used(resource)) + " ";
    }
  }
  const uint64_t heap = ledger.used(Resource::kHeapBytes);
  return held.empty() && heap != 0 ? "heap_bytes=" + std::to_string(heap) + " " : held;
}

}  // namespace rnicd::core
