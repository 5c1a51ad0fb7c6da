#include "tests/fuzz/node.h"

#include <dirent.h>

#include <optional>
#include <string_view>

#include "tests/fuzz/check.h"

namespace rnicd::fuzz {

FuzzNode::FuzzNode(const NodeOptions& options)
    : FuzzGround(options.soft),
      WiredNode({.os = os,
                 .clock = clock,
                 .random = random,
                 .provider = soft,
                 .observer = observer,
                 .workers = workers,
                 .reapers = reapers,
                 .limits = options.limits,
                 .policy = core::OneTenantForEachUid(options.tenant)}) {}

std::shared_ptr<core::Session> FuzzNode::Open(uint64_t process, uid_t uid) {
  auto session = registry.Open(CallerNumbered(process, uid), "fuzz");
  Check(session.ok(), "a session can be opened");
  return *session;
}

MemoryObjectId FuzzNode::Allocate(core::Session& session, uint64_t size, bool seal) {
  std::optional<core::MemoryTicket> allocated;
  const core::MaybePending<core::MemoryTicket> begun =
      session.Begin()->memory().Allocate({.size = size}, [&](const absl::StatusOr<core::MemoryTicket>& ticket) {
        Check(ticket.ok(), "memory can be allocated");
        allocated = *ticket;
      });
  Check(begun.ok(), "an allocation can begin");
  Settle();
  Check(allocated.has_value(), "an allocation completes");
  if (seal) {
    const std::shared_ptr<core::MemoryObject> memory = *session.Begin()->memory().Find(allocated->memory);
    Check(memory->DuplicateFile().ok() && memory->Seal().ok(), "memory can be sealed");
  }
  return allocated->memory;
}

bool FuzzNode::RunOne() {
  const bool worked = workers.RunOne();
  const bool moved = engine_jobs.RunOne();
  const bool reaped = reapers.RunOne();
  return worked || moved || reaped;
}

void FuzzNode::Settle() {
  while (RunOne()) {
  }
}

void FuzzNode::EndAll() {
  for (const core::SessionRegistry::Listed& listed : registry.List()) {
    registry.End(listed.session, core::EndCause::kClosed, nullptr);
  }
  Settle();
  Check(registry.List().empty(), "every session ends");
  CheckNothingHeld(node, os);
}

void CheckNothingHeld(const core::Node& node, const FaultyOs& os) {
  const std::string held = core::HeldBy(*node.ledger);
  Check(held.empty(), "nothing is left, but the node counts " + held);
  for (const auto& tenant : node.tenants.Tenants()) {
    const std::string of_tenant = core::HeldBy(*tenant->ledger());
    Check(of_tenant.empty(), "nothing is left, but a tenant has " + of_tenant);
  }
  Check(node.provider.live_regions() == 0, "no registration is left in the card");
  Check(os.live_mappings() == 0, "no memory is left mapped");
  Check(node.tickets.size() == 0, "no ticket is left");
}

uint64_t OpenDescriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  Check(folder != nullptr, "the kernel lists our descriptors");
  uint64_t count = 0;
  for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
    count += std::string_view(entry->d_name).starts_with('.') ? 0 : 1;
  }
  closedir(folder);
  return count;
}

}  // namespace rnicd::fuzz
