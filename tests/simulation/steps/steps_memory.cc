// Memory objects: allocating, importing, sealing, releasing, and their owner's writes.

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/system/os.h"
#include "daemon/core/session/fd_exchange.h"
#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

using core::Resource;

// Removes the object after a failed allocation or import.
void Forget(Client& client, const Memory& memory) {
  std::erase_if(client.memories, [&memory](const auto& each) { return each.get() == &memory; });
}

std::shared_ptr<MemoryFile> NewFile(Scene& scene, uint64_t bytes) {
  auto file = std::make_shared<MemoryFile>();
  file->number = scene.model.NextNumber();
  file->content.assign(bytes, std::byte{0});
  return file;
}

UniqueFd Duplicate(const UniqueFd& fd) { return UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }

void Attached(Client& client, Memory& memory, std::shared_ptr<MemoryFile> file) {
  const auto object = FindObject(client, memory.id);
  memory.state = Memory::State::kAttached;
  memory.real = object.ok() ? (*object)->mapping() : std::span<std::byte>();
  memory.file = std::move(file);
}

void Issued(Scene& scene, Client& client, const core::MemoryTicket& ticket, core::FdDirection direction) {
  scene.model.tickets.push_back({.bits = ticket.ticket,
                                 .client = &client,
                                 .memory = ticket.memory,
                                 .direction = direction,
                                 .expiry = scene.world.clock.Now() + scene.options.ticket_lifetime});
}

// The effect of an allocation's job.
void ApplyAllocation(Scene& scene, Client& client, const std::shared_ptr<Memory>& memory, uint64_t callback) {
  Faults& faults = scene.model.faults;
  Refusals why = Cancelled(client);
  (void)(!why.none() || faults.Strikes(Fault::kCreateMemoryFile, why) || faults.Strikes(Fault::kMap, why) ||
         faults.Strikes(Fault::kAddSeals, why) || faults.Strikes(Fault::kInspect, why) ||
         faults.Strikes(Fault::kPopulate, why));
  scene.mailbox.Expect(callback, why);
  const Mailbox::Letter* letter = scene.mailbox.Find(callback);
  if (letter == nullptr || !letter->ticket.has_value()) {
    Forget(client, *memory);
    return;
  }
  memory->id = letter->ticket->memory;
  Attached(client, *memory, NewFile(scene, memory->bytes));
  memory->populated = true;
  memory->state = Memory::State::kAwaitingFetch;
  Issued(scene, client, *letter->ticket, core::FdDirection::kToClient);
}

uint64_t DrawSize(const Scene& scene) {
  const uint64_t pages = scene.dice.Between(1, 4);
  if (!scene.Careless()) {
    return pages * kNdkPageBytes;
  }
  return scene.dice.Chance(50) ? 0 : pages * kNdkPageBytes + scene.dice.Between(1, kNdkPageBytes - 1);
}

Refusals CheckNewMemory(const Scene& scene, const Client& client, uint64_t size) {
  Refusals why;
  why.If(scene.model.draining, ErrorReason::DAEMON_DRAINING);
  why.If(size == 0, ErrorReason::FIELD_OUT_OF_RANGE);
  why.If(size % kNdkPageBytes != 0, ErrorReason::MEMORY_SIZE_UNALIGNED);
  scene.model.CheckQuota(client, Resource::kMemoryObjects, 1, why);
  scene.model.CheckQuota(client, Resource::kMemoryBytes, size, why);
  scene.model.CheckHeap(client, {{Resource::kMemoryObjects, 1}, {Resource::kMemoryBytes, size}}, 0, why);
  return why;
}

void AllocateMemory(Scene& scene, Client& client) {
  const uint64_t size = DrawSize(scene);
  Call call(scene, client, "AllocateMemory " + std::to_string(size));
  if (!call.admitted()) {
    return;
  }
  const Refusals why = CheckNewMemory(scene, client, size);
  const uint64_t callback = scene.mailbox.Reserve();
  const auto begun = call.session().memory().Allocate({.size = size}, scene.mailbox.AllocateDoneFor(callback));
  if (!call.Accepted(begun.status(), why)) {
    return;
  }
  const auto memory = std::make_shared<Memory>(Memory{.number = scene.model.NextNumber(), .bytes = size});
  client.memories.push_back(memory);
  scene.model.PostToWorker(client, "allocate m" + std::to_string(memory->number),
                           [&scene, &client, memory, callback] { ApplyAllocation(scene, client, memory, callback); });
}

// Announces an import; null if refused. An announced import has a ticket that waits for its file.
std::shared_ptr<Memory> Announce(Scene& scene, Client& client, uint64_t size, const std::string& what) {
  Call call(scene, client, what + " " + std::to_string(size));
  if (!call.admitted()) {
    return nullptr;
  }
  const Refusals why = CheckNewMemory(scene, client, size);
  const absl::StatusOr<core::MemoryTicket> imported = call.session().memory().Import(size);
  if (!call.Accepted(imported.status(), why)) {
    return nullptr;
  }
  auto memory = std::make_shared<Memory>(Memory{.number = scene.model.NextNumber(),
                                                .id = imported->memory,
                                                .bytes = size,
                                                .state = Memory::State::kAwaitingFile});
  scene.trace.Add(" m" + std::to_string(memory->number));
  client.memories.push_back(memory);
  Issued(scene, client, *imported, core::FdDirection::kToDaemon);
  return memory;
}

void ImportMemory(Scene& scene, Client& client) {
  const uint64_t size = DrawSize(scene);
  (void)Announce(scene, client, size, "ImportMemory");
}

// A file for an import, why it must be refused, and whether the first inspection of the file shows that.
struct DrawnFile {
  std::shared_ptr<MemoryFile> file;
  // The descriptor to send.
  UniqueFd descriptor;
  Refusals why;
  bool shows_at_once = false;
};
DrawnFile DrawFile(Scene& scene, uint64_t size) {
  Os& os = SystemOs();
  DrawnFile drawn;
  const uint64_t flaw = scene.Careless() ? scene.dice.Between(1, 5) : 0;
  absl::StatusOr<UniqueFd> made = os.CreateMemoryFile(flaw == 1 ? size - 1 : size, kNdkPageBytes);
  drawn.descriptor = made.ok() ? *std::move(made) : UniqueFd();
  drawn.shows_at_once = flaw > 1;
  drawn.why.If(flaw == 1, ErrorReason::MEMORY_TOO_SHORT);
  if (flaw == 2) {
    drawn.why.If(true, ErrorReason::MEMORY_WRITE_SEALED);
    (void)os.AddSeals(drawn.descriptor.get(), {.future_write = true});
  } else if (flaw == 3) {
    drawn.why.If(true, ErrorReason::MEMORY_NOT_SEALABLE);
    (void)os.AddSeals(drawn.descriptor.get(), {.seal = true});
  } else if (flaw == 4) {
    drawn.why.If(true, ErrorReason::MEMORY_NOT_MEMORY);
    drawn.descriptor = UniqueFd(eventfd(0, EFD_CLOEXEC));
  } else if (flaw == 5) {
    drawn.descriptor = UniqueFd();
  }
  drawn.file = NewFile(scene, size);
  drawn.file->descriptor = Duplicate(drawn.descriptor);
  return drawn;
}

// A file that already backs a memory object.
DrawnFile SameFile(const std::shared_ptr<MemoryFile>& file, uint64_t size) {
  DrawnFile drawn{.file = file, .descriptor = Duplicate(file->descriptor), .shows_at_once = file->sealed};
  drawn.why.If(file->sealed, ErrorReason::MEMORY_WRITE_SEALED);
  drawn.why.If(!file->sealed && file->content.size() < size, ErrorReason::MEMORY_TOO_SHORT);
  return drawn;
}

// The system calls of an import, up to the first that fails.
void CheckAttach(Faults& faults, const DrawnFile& drawn, Refusals& why) {
  why = drawn.why;
  if (faults.Strikes(Fault::kInspect, why) || drawn.shows_at_once || faults.Strikes(Fault::kAddSeals, why) ||
      faults.Strikes(Fault::kInspect, why) || !why.none()) {
    return;
  }
  (void)faults.Strikes(Fault::kMap, why);
}

// A ticket presented on the fd socket, and why it must be refused.
struct ShownTicket {
  Ticket ticket;
  // True if the ticket was issued to the client and not used.
  bool known = false;
  Refusals why;
};

void ExpectDecision(Scene& scene, const Client& client, const ShownTicket& shown, const absl::Status& outcome) {
  core::Decision decision{.what = "fd", .caller = &client.caller, .status = outcome};
  if (shown.known) {
    decision.tenant = client.tenant->name;
    decision.session = client.session->id();
    decision.object = "memory_id=" + std::to_string(shown.ticket.memory.value);
    decision.note = shown.ticket.direction == core::FdDirection::kToClient ? "to_client" : "to_daemon";
  }
  scene.model.decisions.push_back(TextOf(decision));
}

// Sends the client's file. An import whose file is refused removes its memory object.
void Import(Scene& scene, Client& client, const ShownTicket& shown, const std::shared_ptr<MemoryFile>& same_file) {
  Refusals why = shown.why;
  const std::shared_ptr<Memory> memory = FindMemory(client, shown.ticket.memory);
  const uint64_t bytes = memory != nullptr ? memory->bytes : kNdkPageBytes;
  DrawnFile drawn = same_file != nullptr ? SameFile(same_file, bytes) : DrawFile(scene, bytes);
  why.If(shown.known && !drawn.descriptor.valid(), ErrorReason::FD_COUNT_WRONG);
  const bool reaches_memory = why.none();
  if (reaches_memory) {
    scene.model.RevokeTicket(client, shown.ticket.memory);
    CheckAttach(scene.model.faults, drawn, why);
  }
  const auto outcome =
      core::ExchangeFd(scene.world.node, client.caller, shown.ticket.bits, std::move(drawn.descriptor));
  ExpectDecision(scene, client, shown, outcome.status());
  scene.trace.Add(" -> " + TextOf(outcome.status()));
  if (!why.Allows(outcome.status())) {
    scene.findings.Report("CallsAreJudgedByTheRules",
                          "answered " + TextOf(outcome.status()) + " instead of " + why.Text());
  } else if (outcome.ok()) {
    Attached(client, *memory, drawn.file);
    scene.trace.Add(" file " + std::to_string(drawn.file->number));
  } else if (reaches_memory) {
    Model::Bury(client, memory->id.value);
    Forget(client, *memory);
  }
}

void Fetch(Scene& scene, Client& client, const ShownTicket& shown) {
  const Refusals& why = shown.why;
  const std::shared_ptr<Memory> memory = FindMemory(client, shown.ticket.memory);
  if (why.none()) {
    scene.model.RevokeTicket(client, shown.ticket.memory);
  }
  auto outcome = core::ExchangeFd(scene.world.node, client.caller, shown.ticket.bits, UniqueFd());
  ExpectDecision(scene, client, shown, outcome.status());
  scene.trace.Add(" -> " + TextOf(outcome.status()));
  if (!why.Allows(outcome.status()) || (outcome.ok() && !outcome->valid())) {
    scene.findings.Report("CallsAreJudgedByTheRules",
                          "answered " + TextOf(outcome.status()) + " instead of " + why.Text());
  } else if (outcome.ok()) {
    memory->state = Memory::State::kAttached;
    memory->file->descriptor = *std::move(outcome);
  }
}

// Sends a packet on the fd socket. An attempt consumes the ticket, unless it is by another process, during the end of
// the session, or with the wrong number of descriptors.
void ExchangeFd(Scene& scene, Client& client) {
  std::vector<Ticket>& tickets = scene.model.tickets;
  const Instant now = scene.world.clock.Now();
  std::erase_if(tickets, [now](const Ticket& ticket) { return ticket.expiry <= now; });
  ShownTicket shown{.ticket = {.client = &client}};
  for (const Ticket& each : tickets) {
    if (each.client == &client || scene.Careless()) {
      shown.ticket = each;
    }
  }
  const auto known = std::find_if(tickets.begin(), tickets.end(), [&](const Ticket& each) {
    return each.bits == shown.ticket.bits && each.client == &client;
  });
  shown.known = known != tickets.end();
  shown.why.If(!shown.known, ErrorReason::TICKET_UNKNOWN);
  shown.why.If(shown.known && client.ending, ErrorReason::SESSION_ENDING);
  const bool imports = shown.ticket.direction == core::FdDirection::kToDaemon;
  scene.trace.BeginStep("s" + std::to_string(client.number) + (imports ? " hands a file over" : " fetches a file"));
  if (imports) {
    Import(scene, client, shown, nullptr);
  } else {
    Fetch(scene, client, shown);
  }
}

// A file that backs memory, usually of the client's tenant and usually not sealed.
std::shared_ptr<MemoryFile> PickFile(const Scene& scene, const Client& client) {
  const bool stranger = scene.dice.Chance(15);
  const bool sealed = scene.Careless();
  std::vector<std::shared_ptr<MemoryFile>> files;
  for (const auto& other : scene.model.clients) {
    for (const auto& memory : other->memories) {
      const bool is_there = memory->file != nullptr && memory->file->descriptor.valid();
      if (is_there && (memory->file->sealed == sealed) && (stranger || other->tenant == client.tenant)) {
        files.push_back(memory->file);
      }
    }
  }
  return files.empty() ? nullptr : scene.dice.Pick(files);
}

// Makes another memory object from a file, in the same session or in another one.
void ShareMemory(Scene& scene, Client& client) {
  const std::shared_ptr<MemoryFile> file = PickFile(scene, client);
  if (file == nullptr) {
    ImportMemory(scene, client);
    return;
  }
  uint64_t pages = file->content.size() / kNdkPageBytes + (scene.Careless() ? 1 : 0);
  if (scene.dice.Chance(30)) {
    pages = scene.dice.Between(1, pages);
  }
  const auto memory =
      Announce(scene, client, pages * kNdkPageBytes, "ShareMemory of file " + std::to_string(file->number));
  if (memory == nullptr) {
    return;
  }
  const ShownTicket shown{.ticket = scene.model.tickets.back(), .known = true};
  Import(scene, client, shown, file);
}

// Seals the file, up to the first system call that fails.
Refusals BeginSeal(Scene& scene, const Client& client, Memory& memory) {
  Refusals why = Cancelled(client);
  const bool is_attached = memory.state == Memory::State::kAttached;
  why.If(why.none() && memory.state == Memory::State::kSealed, ErrorReason::MEMORY_ALREADY_SEALED);
  why.If(why.none() && memory.state == Memory::State::kSealing, ErrorReason::MEMORY_IN_USE);
  why.If(why.none() && !is_attached, ErrorReason::MEMORY_NOT_ATTACHED);
  if (!why.none()) {
    return why;
  }
  memory.seals_complete = memory.seals_complete || !scene.model.faults.Strikes(Fault::kAddSeals, why);
  memory.file->sealed = memory.file->sealed || memory.seals_complete;
  if (memory.seals_complete && !scene.model.faults.Strikes(Fault::kInspect, why)) {
    memory.state = Memory::State::kSealing;
  }
  return why;
}

Refusals FinishSeal(Scene& scene, const Client& client, Memory& memory) {
  Refusals why = Cancelled(client);
  const bool populated = why.none() && (memory.populated || !scene.model.faults.Strikes(Fault::kPopulate, why));
  memory.state = populated ? Memory::State::kSealed : Memory::State::kAttached;
  return why;
}

void SealMemory(Scene& scene, Client& client) {
  const MemoryObjectId id = PickFitting(scene, client, &Client::memories,
                                        [](const Memory& each) { return each.state == Memory::State::kAttached; });
  const std::shared_ptr<Memory> memory = FindMemory(client, id);
  Call call(scene, client, "SealMemory " + Name("m", memory, id.value));
  if (!call.admitted()) {
    return;
  }
  const bool slow = memory != nullptr && !memory->populated && scene.model.IsSlow(memory->bytes);
  Refusals why;
  why.If(memory == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  if (memory != nullptr) {
    why = BeginSeal(scene, client, *memory);
  }
  if (memory != nullptr && why.none() && !slow) {
    why = FinishSeal(scene, client, *memory);
  }
  const uint64_t callback = scene.mailbox.Reserve();
  const auto found = call.session().memory().Find(id);
  const core::MaybePending<> progress =
      found.ok() ? call.session().memory().Seal(*found, scene.mailbox.DoneFor(callback)) : found.status();
  if (call.Accepted(progress, why, slow) && slow) {
    scene.model.PostToWorker(client, "seal m" + std::to_string(memory->number), [&scene, &client, memory, callback] {
      scene.mailbox.Expect(callback, FinishSeal(scene, client, *memory));
    });
  }
}

// Releases the memory if nothing uses it.
Refusals ApplyRelease(Scene& scene, Client& client, const std::shared_ptr<Memory>& memory) {
  Refusals why = Cancelled(client);
  const bool is_there = FindMemory(client, memory->id) == memory;
  const bool is_used = memory->uses > 0 || memory->state == Memory::State::kSealing;
  why.If(why.none() && (is_used || !is_there), ErrorReason::MEMORY_IN_USE);
  if (why.none()) {
    scene.model.RevokeTicket(client, memory->id);
    Model::Bury(client, memory->id.value);
    Forget(client, *memory);
  }
  return why;
}

void ReleaseMemory(Scene& scene, Client& client) {
  const MemoryObjectId id = PickId(scene, client, &Client::memories);
  const std::shared_ptr<Memory> memory = FindMemory(client, id);
  Call call(scene, client, "ReleaseMemory " + Name("m", memory, id.value));
  if (!call.admitted()) {
    return;
  }
  const bool slow = memory != nullptr && scene.model.IsSlow(memory->bytes);
  Refusals why;
  why.If(memory == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(memory != nullptr && !slow && (memory->uses > 0 || memory->state == Memory::State::kSealing),
         ErrorReason::MEMORY_IN_USE);
  const uint64_t callback = scene.mailbox.Reserve();
  const auto progress = call.session().memory().Release(id, scene.mailbox.DoneFor(callback));
  if (!call.Accepted(progress, why, slow)) {
    return;
  }
  if (!slow) {
    (void)ApplyRelease(scene, client, memory);
    return;
  }
  scene.model.PostToWorker(client, "release m" + std::to_string(memory->number), [&scene, &client, memory, callback] {
    scene.mailbox.Expect(callback, ApplyRelease(scene, client, memory));
  });
}

// The owner's writes, which no other party can see or prevent.
void WriteMemory(Scene& scene, Client& client) {
  const std::shared_ptr<Memory> memory = scene.dice.Pick(client.memories);
  if (memory->file == nullptr) {
    return;
  }
  const uint64_t first = scene.dice.Below(memory->bytes);
  const uint64_t count = std::min<uint64_t>(memory->bytes - first, scene.dice.Between(1, 600));
  const uint64_t pattern = scene.dice.Next();
  scene.trace.BeginStep("s" + std::to_string(client.number) + " writes into m" + std::to_string(memory->number));
  for (uint64_t index = 0; index < count; ++index) {
    memory->file->content[first + index] =
        static_cast<std::byte>(pattern >> (index % 8 * 8)) ^ static_cast<std::byte>(index);
  }
  std::memcpy(memory->real.data() + first, memory->file->content.data() + first, count);
}

uint64_t HasMemory(const Client& client) { return client.memories.empty() ? 0 : 1; }

bool HasAny(const Client& client, Memory::State state) {
  return std::any_of(client.memories.begin(), client.memories.end(),
                     [state](const auto& memory) { return memory->state == state; });
}

}  // namespace

std::vector<ClientStep> MemorySteps() {
  return {
      {AllocateMemory, [](const Client& client) -> uint64_t { return client.memories.size() < 2 ? 120 : 8; }},
      {ImportMemory, [](const Client& client) -> uint64_t { return client.memories.size() < 2 ? 20 : 5; }},
      {ShareMemory, [](const Client& client) -> uint64_t { return client.memories.size() < 3 ? 40 : 4; }},
      {ExchangeFd,
       [](const Client& client) -> uint64_t {
         return HasAny(client, Memory::State::kAwaitingFetch) ? 80 : 16 * HasMemory(client);
       }},
      {SealMemory,
       [](const Client& client) -> uint64_t {
         return HasAny(client, Memory::State::kAttached) ? 60 : HasMemory(client);
       }},
      {ReleaseMemory, [](const Client& client) { return 10 * HasMemory(client); }},
      {WriteMemory, [](const Client& client) { return 30 * HasMemory(client); }},
  };
}

}  // namespace rnicd::simulation
