#include "daemon/app/generation/giving_side_linux.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/app/generation/contents_linux.h"
#include "daemon/core/memory/memory_pool.h"
#include "daemon/handover/contents_file.h"

namespace rnicd::app {
namespace {

// One of so many reports has counters.
constexpr uint64_t kReportsPerCounters = 10;
// So that a packet has room for them.
constexpr size_t kOwnersPerPacket = 16;

void Add(v1::HandoverFileKind kind, UniqueFd file, handover::GivingDaemon::Given& given) {
  given.contents.add_files()->set_kind(kind);
  given.files.push_back(std::move(file));
}

// `use` finds the place in the message.
template <typename Use>
void Tell(const std::vector<core::HeldUse>& owners, const Use& use, std::vector<handover::Outgoing>& packets) {
  for (size_t index = 0; index < owners.size(); ++index) {
    if (index % kOwnersPerPacket == 0) {
      packets.emplace_back();
    }
    *use(packets.back().message)->add_held() = ToWire(owners[index]);
  }
}

}  // namespace

void GivingSide::Self::OnProcessEnded(const core::ProcessKey& process) {
  MutexLock lock(mutex_);
  if (side_ != nullptr) {
    side_->OnProcessEnded(process);
  }
}

void GivingSide::Self::Reset() {
  MutexLock lock(mutex_);
  side_ = nullptr;
}

// First of all, so that no grant is made that the newer generation does not get whole.
core::Inheritance GivingSide::Begin() {
  if (older_ != nullptr) {
    older_->SetFrozen(true);
  }
  core::Inheritance inheritance =
      retirement_.Begin([self = self_](const core::ProcessKey& process) { self->OnProcessEnded(process); });
  if (older_ == nullptr) {
    return inheritance;
  }
  const core::Inheritance left = older_->inherited().Left();
  inheritance.processes.insert(inheritance.processes.end(), left.processes.begin(), left.processes.end());
  for (const core::HeldUse& use : left.held) {
    const auto same = [&](const core::HeldUse& own) { return own.tenant == use.tenant && own.grant == use.grant; };
    if (std::ranges::none_of(inheritance.held, same)) {
      inheritance.held.push_back(use);
      inheritance.held.back().held = {};
    }
  }
  Join(inheritance.held, true);
  return inheritance;
}

void GivingSide::EndRetirement() {
  retirement_.Cancel();
  if (older_ != nullptr) {
    older_->SetFrozen(false);
  }
}

void GivingSide::Join(std::vector<core::HeldUse>& uses, bool adds) const {
  if (older_ == nullptr) {
    return;
  }
  for (const core::HeldUse& left : older_->inherited().Left().held) {
    for (core::HeldUse& use : uses) {
      for (size_t place = 0; place < core::kResourceCount && use.tenant == left.tenant && use.grant == left.grant;
           ++place) {
        use.held[place] =
            adds ? use.held[place] + left.held[place] : use.held[place] - std::min(use.held[place], left.held[place]);
      }
    }
  }
}

absl::StatusOr<handover::GivingDaemon::Given> GivingSide::Give() {
  RNICD_ASSIGN_OR_RETURN(UniqueFd lock, options_.directory.CopyLock());
  Given given;
  AddTo(given.contents, Begin());
  absl::StatusOr<transport::HandedDoor> door = door_.Give();
  if (!door.ok()) {
    EndRetirement();
    return door.status();
  }
  if (UniqueSocket pages = parts_.callbacks.lend_pages(); pages.valid()) {
    Add(v1::HANDOVER_FILE_KIND_PAGES, UniqueFd(pages.Release()), given);
    given.contents.set_page_address(parts_.callbacks.page_address);
  }
  given.contents.set_generation(options_.generation);
  given.contents.set_version(parts_.version);
  given.contents.set_counters(parts_.callbacks.counters());
  Add(v1::HANDOVER_FILE_KIND_HANDOVER_LOCK, std::move(lock), given);
  for (UniqueFd& process : older_ != nullptr ? older_->Processes() : std::vector<UniqueFd>()) {
    Add(v1::HANDOVER_FILE_KIND_PROCESS, std::move(process), given);
  }
  AddFiles(*std::move(door), given);
  return given;
}

void GivingSide::AddFiles(transport::HandedDoor door, Given& given) {
  Add(v1::HANDOVER_FILE_KIND_WORKLOADS_LOCK, std::move(door.workloads_lock), given);
  Add(v1::HANDOVER_FILE_KIND_OPERATORS_LOCK, std::move(door.operators_lock), given);
  Add(v1::HANDOVER_FILE_KIND_DOORS_LOCK, std::move(door.doors_lock), given);
  for (transport::HandedSocket& socket : door.sockets) {
    v1::HandoverFile& file = *given.contents.add_files();
    file = FileOf(socket.door, socket.grant);
    file.set_device(socket.file.device);
    file.set_inode(socket.file.inode);
    given.files.push_back(std::move(socket.listener));
  }
}

void GivingSide::TakeBack() {
  retired_.store(false);
  EndRetirement();
  if (parts_.node.pool != nullptr) {
    parts_.node.pool->Resume();
  }
  door_.Resume();
  parts_.callbacks.on_taken_back(std::exchange(newer_counters_, {}));
}

void GivingSide::Retire() {
  door_.Retire(options_.generation);
  ends_ = clock_.Now() + options_.deadline;
  retired_.store(true);
  if (parts_.node.pool != nullptr) {
    // The newer generation keeps memory ready. Freed where it holds up nothing.
    parts_.node.populators.Post(
        [freed = std::make_shared<std::vector<core::FreshMemory>>(parts_.node.pool->Suspend())] { freed->clear(); });
  }
}

bool GivingSide::Holds(const core::ProcessKey& process) const {
  return retirement_.Holds(process) || (older_ != nullptr && older_->inherited().Owns(process));
}

void GivingSide::OnProcessEnded(const core::ProcessKey& process) {
  if (Holds(process)) {
    return;
  }
  handover::Outgoing ended;
  *ended.message.mutable_process_ended() = ToWire(process);
  giver_.Tell(std::move(ended));
}

void GivingSide::Receive(const v1::HandoverFile& listener, UniqueSocket socket) {
  door_.Receive(
      DoorOf(listener.kind()), GrantId{listener.grant_id()}, std::move(socket),
      [this, listener](std::shared_ptr<const UniqueSocket> unread) {
        handover::Outgoing back;
        *back.message.mutable_socket()->mutable_listener() = listener;
        back.sockets.push_back(std::move(unread));
        giver_.Tell(std::move(back));
      },
      [this](const core::ProcessKey& process) { return !retired() || Holds(process); });
}

void GivingSide::Granted(const v1::HandoverUse& use) {
  std::vector<core::HeldUse> granted;
  for (const v1::HandoverHeld& held : use.held()) {
    granted.push_back(FromWire(held));
  }
  Join(granted, false);
  for (const core::HeldUse& own : granted) {
    retirement_.Granted(own);
  }
}

void GivingSide::NarrowGrant(GrantId grant, const std::string& pod_uid) {
  retirement_.Narrow(grant, pod_uid);
  if (older_ != nullptr) {
    older_->NarrowGrant(grant, pod_uid);
  }
}

bool GivingSide::IsOver() const {
  return (retirement_.empty() && (older_ == nullptr || older_->ended())) || clock_.Now() >= ends_;
}

void GivingSide::AddCounters(std::vector<handover::Outgoing>& packets) const {
  absl::StatusOr<UniqueFd> counters = handover::ContentsFile(parts_.callbacks.counters());
  if (!counters.ok()) {
    return;
  }
  std::vector<core::OlderGeneration> generations = older_ != nullptr ? older_->generations() : decltype(generations)();
  generations.insert(generations.begin(),
                     {.generation = options_.generation, .sessions = parts_.registry.List().size(), .deadline = ends_});
  handover::Outgoing& packet = packets.emplace_back();
  for (const core::OlderGeneration& each : generations) {
    v1::HandoverGeneration& added = *packet.message.mutable_counters()->add_generations();
    added.set_generation(each.generation);
    added.set_sessions(each.sessions);
    added.set_remaining_ms(static_cast<uint64_t>(std::max<int64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(each.deadline - clock_.Now()).count(), 0)));
  }
  packet.sockets.push_back(std::make_shared<const UniqueSocket>(counters->Release()));
}

std::vector<handover::Outgoing> GivingSide::Report() {
  std::vector<handover::Outgoing> packets;
  core::Retirement::Changes changes = retirement_.Tick();
  Join(changes.shrunk, true);
  Join(changes.wanted, true);
  Tell(changes.shrunk, [](v1::HandoverMessage& message) { return message.mutable_shrunk(); }, packets);
  Tell(changes.wanted, [](v1::HandoverMessage& message) { return message.mutable_wanted(); }, packets);
  const bool over = IsOver();
  if (over || reports_++ % kReportsPerCounters == 0) {
    AddCounters(packets);
  }
  if (over) {
    parts_.callbacks.on_over();
  }
  return packets;
}

}  // namespace rnicd::app
