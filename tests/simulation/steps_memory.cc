// Memory objects: allocating, importing, sealing, releasing, and what their owner writes into them.

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/os.h"
#include "daemon/core/fd_exchange.h"
#include "tests/simulation/steps.h"

namespace rnicd::simulation {
namespace {

using core::Resource;

// What a failed allocation or import leaves: nothing.
void Forget(Tenant& tenant, const Memory& memory) {
  std::erase_if(tenant.memories, [&memory](const auto& each) { return each.get() == &memory; });
}

void Attached(Tenant& tenant, Memory& memory) {
  const auto object = tenant.session->FindMemory(memory.id);
  memory.state = Memory::State::kAttached;
  memory.real = object.ok() ? (*object)->mapping() : std::span<std::byte>();
  memory.content.assign(memory.bytes, std::byte{0});
}

void Issued(Scene& scene, Tenant& tenant, const core::MemoryTicket& ticket, core::FdDirection direction) {
  scene.model.tickets.push_back({.bits = ticket.ticket,
                                 .tenant = &tenant,
                                 .memory = ticket.memory,
                                 .direction = direction,
                                 .expiry = scene.world.clock.Now() + scene.options.ticket_lifetime});
}

// What the job of an allocation does.
void ApplyAllocation(Scene& scene, Tenant& tenant, const std::shared_ptr<Memory>& memory, uint64_t callback) {
  Faults& faults = scene.model.faults;
  Refusals why;
  (void)(faults.Strikes(Fault::kCreateMemoryFile, why) || faults.Strikes(Fault::kAddSeals, why) ||
         faults.Strikes(Fault::kMap, why) || faults.Strikes(Fault::kPopulate, why));
  scene.mailbox.Expect(callback, why);
  const Mailbox::Letter* letter = scene.mailbox.Find(callback);
  if (letter == nullptr || !letter->ticket.has_value()) {
    Forget(tenant, *memory);
    return;
  }
  memory->id = letter->ticket->memory;
  Attached(tenant, *memory);
  Issued(scene, tenant, *letter->ticket, core::FdDirection::kToClient);
}

uint64_t DrawSize(const Scene& scene) {
  const uint64_t pages = scene.dice.Between(1, 4);
  if (!scene.Careless()) {
    return pages * kNdkPageBytes;
  }
  return scene.dice.Chance(50) ? 0 : pages * kNdkPageBytes + scene.dice.Between(1, kNdkPageBytes - 1);
}

Refusals JudgeNewMemory(const Scene& scene, const Tenant& tenant, uint64_t size) {
  Refusals why;
  why.If(size == 0, ErrorReason::FIELD_OUT_OF_RANGE);
  why.If(size % kNdkPageBytes != 0, ErrorReason::MEMORY_SIZE_UNALIGNED);
  scene.model.JudgeQuota(tenant, Resource::kMemoryObjects, 1, why);
  scene.model.JudgeQuota(tenant, Resource::kMemoryBytes, size, why);
  return why;
}

void AllocateMemory(Scene& scene, Tenant& tenant) {
  const uint64_t size = DrawSize(scene);
  Call call(scene, tenant, "AllocateMemory " + std::to_string(size));
  if (!call.admitted()) {
    return;
  }
  const Refusals why = JudgeNewMemory(scene, tenant, size);
  const uint64_t callback = scene.mailbox.Reserve();
  const absl::Status status = tenant.session->AllocateMemory({.size = size}, scene.mailbox.AllocateDoneFor(callback));
  if (!call.Accepted(status, why)) {
    return;
  }
  const auto memory = std::make_shared<Memory>(Memory{.number = scene.model.NextNumber(), .bytes = size});
  tenant.memories.push_back(memory);
  scene.model.PostToWorker(tenant, "allocate m" + std::to_string(memory->number),
                           [&scene, &tenant, memory, callback] { ApplyAllocation(scene, tenant, memory, callback); });
}

void ImportMemory(Scene& scene, Tenant& tenant) {
  const uint64_t size = DrawSize(scene);
  Call call(scene, tenant, "ImportMemory " + std::to_string(size));
  if (!call.admitted()) {
    return;
  }
  const Refusals why = JudgeNewMemory(scene, tenant, size);
  const absl::StatusOr<core::MemoryTicket> imported = tenant.session->ImportMemory(size);
  if (!call.Accepted(imported.status(), why)) {
    return;
  }
  auto memory = std::make_shared<Memory>(Memory{.number = scene.model.NextNumber(),
                                                .id = imported->memory,
                                                .bytes = size,
                                                .state = Memory::State::kAwaitingFile});
  scene.trace.Add(" m" + std::to_string(memory->number));
  tenant.memories.push_back(std::move(memory));
  Issued(scene, tenant, *imported, core::FdDirection::kToDaemon);
}

// A file for an import, why it must be refused, and whether that shows as soon as the file is looked at.
struct DrawnFile {
  UniqueFd file;
  Refusals why;
  bool shows_at_once = false;
};
DrawnFile DrawFile(const Scene& scene, uint64_t size) {
  Os& os = LinuxOs();
  DrawnFile drawn;
  const uint64_t flaw = scene.Careless() ? scene.dice.Between(1, 5) : 0;
  absl::StatusOr<UniqueFd> made = os.CreateMemoryFile(flaw == 1 ? size - 1 : size, kNdkPageBytes);
  drawn.file = made.ok() ? *std::move(made) : UniqueFd();
  drawn.shows_at_once = flaw > 1;
  drawn.why.If(flaw == 1, ErrorReason::MEMORY_TOO_SHORT);
  if (flaw == 2) {
    drawn.why.If(true, ErrorReason::MEMORY_WRITE_SEALED);
    (void)os.AddSeals(drawn.file.get(), F_SEAL_FUTURE_WRITE);
  } else if (flaw == 3) {
    drawn.why.If(true, ErrorReason::MEMORY_NOT_SEALABLE);
    (void)os.AddSeals(drawn.file.get(), F_SEAL_SEAL);
  } else if (flaw == 4) {
    drawn.why.If(true, ErrorReason::MEMORY_NOT_MEMORY);
    drawn.file = UniqueFd(eventfd(0, EFD_CLOEXEC));
  } else if (flaw == 5) {
    drawn.why.If(true, ErrorReason::FD_COUNT_WRONG);
    drawn.file = UniqueFd();
  }
  return drawn;
}

// The system calls of an import, as far as they come.
void JudgeAttach(Faults& faults, const DrawnFile& drawn, Refusals& why) {
  why = drawn.why;
  if (!drawn.file.valid() || faults.Strikes(Fault::kInspect, why) || drawn.shows_at_once ||
      faults.Strikes(Fault::kAddSeals, why) || faults.Strikes(Fault::kInspect, why) || !why.none()) {
    return;
  }
  (void)(faults.Strikes(Fault::kMap, why) || faults.Strikes(Fault::kPopulate, why));
}

// Hands the client's file over. A refused import takes its memory object back.
void Import(Scene& scene, Tenant& tenant, const Ticket& ticket, Refusals why) {
  const std::shared_ptr<Memory> memory = FindMemory(tenant, ticket.memory);
  why.If(memory == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  const bool reaches_memory = why.none();
  DrawnFile drawn = DrawFile(scene, memory != nullptr ? memory->bytes : kNdkPageBytes);
  if (reaches_memory) {
    JudgeAttach(scene.model.faults, drawn, why);
  }
  const auto outcome = core::ExchangeFd(scene.world.node, tenant.caller, ticket.bits, std::move(drawn.file));
  scene.trace.Add(" -> " + TextOf(outcome.status()));
  if (!why.Allows(outcome.status())) {
    scene.findings.Report("CallsAreJudgedByTheRules",
                          "answered " + TextOf(outcome.status()) + " instead of " + why.Text());
  } else if (outcome.ok()) {
    Attached(tenant, *memory);
  } else if (reaches_memory) {
    Model::Bury(tenant, memory->id.value);
    Forget(tenant, *memory);
  }
}

void Fetch(Scene& scene, Tenant& tenant, const Ticket& ticket, Refusals why) {
  const std::shared_ptr<Memory> memory = FindMemory(tenant, ticket.memory);
  why.If(memory == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(memory != nullptr && memory->state != Memory::State::kAttached, ErrorReason::MEMORY_ALREADY_SEALED);
  const auto outcome = core::ExchangeFd(scene.world.node, tenant.caller, ticket.bits, UniqueFd());
  scene.trace.Add(" -> " + TextOf(outcome.status()));
  if (!why.Allows(outcome.status()) || (outcome.ok() && !outcome->valid())) {
    scene.findings.Report("CallsAreJudgedByTheRules",
                          "answered " + TextOf(outcome.status()) + " instead of " + why.Text());
  }
}

// A packet on the fd socket. Whoever comes: the ticket is spent, unless it was another process.
void ExchangeFd(Scene& scene, Tenant& tenant) {
  std::vector<Ticket>& tickets = scene.model.tickets;
  const Instant now = scene.world.clock.Now();
  std::erase_if(tickets, [now](const Ticket& ticket) { return ticket.expiry <= now; });
  Ticket ticket{.tenant = &tenant};
  for (const Ticket& each : tickets) {
    if (each.tenant == &tenant || scene.Careless()) {
      ticket = each;
    }
  }
  const auto known = std::find_if(tickets.begin(), tickets.end(), [&](const Ticket& each) {
    return each.bits == ticket.bits && each.tenant == &tenant;
  });
  Refusals why;
  why.If(known == tickets.end(), ErrorReason::TICKET_UNKNOWN);
  if (known != tickets.end()) {
    tickets.erase(known);
    why.If(tenant.ending, ErrorReason::SESSION_ENDING);
  }
  const bool imports = ticket.direction == core::FdDirection::kToDaemon;
  scene.trace.BeginStep("t" + std::to_string(tenant.number) + (imports ? " hands a file over" : " fetches a file"));
  if (imports) {
    Import(scene, tenant, ticket, why);
  } else {
    Fetch(scene, tenant, ticket, why);
  }
}

// Seals the memory as far as the system calls let it.
Refusals ApplySeal(Scene& scene, const Tenant& tenant, Memory& memory) {
  Refusals why;
  const bool is_there = FindMemory(tenant, memory.id).get() == &memory;
  why.If(!is_there, ErrorReason::MEMORY_IN_USE);
  why.If(memory.state == Memory::State::kAwaitingFile, ErrorReason::MEMORY_NOT_ATTACHED);
  why.If(memory.state == Memory::State::kSealed, ErrorReason::MEMORY_ALREADY_SEALED);
  if (!why.none()) {
    return why;
  }
  memory.seals_complete = memory.seals_complete || !scene.model.faults.Strikes(Fault::kAddSeals, why);
  if (memory.seals_complete && !scene.model.faults.Strikes(Fault::kPopulate, why)) {
    memory.state = Memory::State::kSealed;
  }
  return why;
}

void SealMemory(Scene& scene, Tenant& tenant) {
  const MemoryObjectId id = PickFitting(scene, tenant, &Tenant::memories,
                                        [](const Memory& each) { return each.state == Memory::State::kAttached; });
  const std::shared_ptr<Memory> memory = FindMemory(tenant, id);
  Call call(scene, tenant, "SealMemory " + Name("m", memory, id.value));
  if (!call.admitted()) {
    return;
  }
  const bool slow = memory != nullptr && scene.model.IsSlow(memory->bytes);
  Refusals why;
  why.If(memory == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  if (memory != nullptr && !slow) {
    why = ApplySeal(scene, tenant, *memory);
  }
  const uint64_t callback = scene.mailbox.Reserve();
  const auto found = tenant.session->FindMemory(id);
  const absl::StatusOr<core::Progress> progress =
      found.ok() ? tenant.session->SealMemory(*found, scene.mailbox.DoneFor(callback)) : found.status();
  if (call.Accepted(progress, why, slow) && slow) {
    scene.model.PostToWorker(tenant, "seal m" + std::to_string(memory->number), [&scene, &tenant, memory, callback] {
      scene.mailbox.Expect(callback, ApplySeal(scene, tenant, *memory));
    });
  }
}

// Gives the memory back, if nothing uses it.
Refusals ApplyRelease(Tenant& tenant, const std::shared_ptr<Memory>& memory) {
  Refusals why;
  const bool is_there = FindMemory(tenant, memory->id) == memory;
  why.If(memory->uses > 0 || !is_there, ErrorReason::MEMORY_IN_USE);
  if (why.none()) {
    Model::Bury(tenant, memory->id.value);
    Forget(tenant, *memory);
  }
  return why;
}

void ReleaseMemory(Scene& scene, Tenant& tenant) {
  const MemoryObjectId id = PickId(scene, tenant, &Tenant::memories);
  const std::shared_ptr<Memory> memory = FindMemory(tenant, id);
  Call call(scene, tenant, "ReleaseMemory " + Name("m", memory, id.value));
  if (!call.admitted()) {
    return;
  }
  const bool slow = memory != nullptr && scene.model.IsSlow(memory->bytes);
  Refusals why;
  why.If(memory == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(memory != nullptr && !slow && memory->uses > 0, ErrorReason::MEMORY_IN_USE);
  const uint64_t callback = scene.mailbox.Reserve();
  const auto progress = tenant.session->ReleaseMemory(id, scene.mailbox.DoneFor(callback));
  if (!call.Accepted(progress, why, slow)) {
    return;
  }
  if (!slow) {
    (void)ApplyRelease(tenant, memory);
    return;
  }
  scene.model.PostToWorker(tenant, "release m" + std::to_string(memory->number), [&scene, &tenant, memory, callback] {
    scene.mailbox.Expect(callback, ApplyRelease(tenant, memory));
  });
}

// The owner's own writes, which nobody can see or stop.
void WriteMemory(Scene& scene, Tenant& tenant) {
  const std::shared_ptr<Memory> memory = scene.dice.Pick(tenant.memories);
  if (memory->content.empty()) {
    return;
  }
  const uint64_t first = scene.dice.Below(memory->bytes);
  const uint64_t count = std::min<uint64_t>(memory->bytes - first, scene.dice.Between(1, 600));
  const uint64_t pattern = scene.dice.Next();
  scene.trace.BeginStep("t" + std::to_string(tenant.number) + " writes into m" + std::to_string(memory->number));
  for (uint64_t index = 0; index < count; ++index) {
    memory->content[first + index] = static_cast<std::byte>(pattern >> (index % 8 * 8)) ^ static_cast<std::byte>(index);
  }
  std::memcpy(memory->real.data() + first, memory->content.data() + first, count);
}

uint64_t HasMemory(const Tenant& tenant) { return tenant.memories.empty() ? 0 : 1; }

bool HasUnsealed(const Tenant& tenant) {
  return std::any_of(tenant.memories.begin(), tenant.memories.end(),
                     [](const auto& memory) { return memory->state == Memory::State::kAttached; });
}

}  // namespace

std::vector<ClientStep> MemorySteps() {
  return {
      {AllocateMemory, [](const Tenant& tenant) -> uint64_t { return tenant.memories.size() < 2 ? 120 : 8; }},
      {ImportMemory, [](const Tenant& tenant) -> uint64_t { return tenant.memories.size() < 2 ? 20 : 5; }},
      {ExchangeFd, [](const Tenant& tenant) { return 16 * HasMemory(tenant); }},
      {SealMemory, [](const Tenant& tenant) -> uint64_t { return HasUnsealed(tenant) ? 120 : HasMemory(tenant); }},
      {ReleaseMemory, [](const Tenant& tenant) { return 10 * HasMemory(tenant); }},
      {WriteMemory, [](const Tenant& tenant) { return 30 * HasMemory(tenant); }},
  };
}

}  // namespace rnicd::simulation
