#include "daemon/app/generation/taking_side_linux.h"

#include <chrono>
#include <utility>

#include "base/status.h"
#include "daemon/app/generation/contents_linux.h"

namespace rnicd::app {
namespace {

bool IsSocket(v1::HandoverFileKind kind) {
  return kind == v1::HANDOVER_FILE_KIND_WORKLOADS || kind == v1::HANDOVER_FILE_KIND_OPERATORS ||
         kind == v1::HANDOVER_FILE_KIND_DESCRIPTORS;
}

// A file of a kind that is not known here is closed.
void Sort(const v1::HandoverFile& file, UniqueFd descriptor, TakingSide::Taken& taken) {
  if (IsSocket(file.kind())) {
    taken.door.sockets.push_back({.door = DoorOf(file.kind()),
                                  .grant = GrantId{file.grant_id()},
                                  .listener = std::move(descriptor),
                                  .file = {.device = file.device(), .inode = file.inode()}});
    return;
  }
  const std::pair<v1::HandoverFileKind, UniqueFd&> others[] = {
      {v1::HANDOVER_FILE_KIND_WORKLOADS_LOCK, taken.door.workloads_lock},
      {v1::HANDOVER_FILE_KIND_OPERATORS_LOCK, taken.door.operators_lock},
      {v1::HANDOVER_FILE_KIND_DOORS_LOCK, taken.door.doors_lock},
      {v1::HANDOVER_FILE_KIND_HANDOVER, taken.handover_listener},
      {v1::HANDOVER_FILE_KIND_HANDOVER_LOCK, taken.handover_lock},
      {v1::HANDOVER_FILE_KIND_PAGES, taken.pages}};
  for (const auto& [kind, place] : others) {
    if (kind == file.kind()) {
      place = std::move(descriptor);
    }
  }
}

}  // namespace

absl::StatusOr<TakingSide::Taken> TakingSide::Take() {
  RNICD_ASSIGN_OR_RETURN(handover::Predecessor::Taken given, predecessor_->Take(parts_.version));
  generation_ = given.contents.generation();
  Taken taken;
  for (int index = 0; index < given.contents.files_size(); ++index) {
    Sort(given.contents.files(index), std::move(given.files[static_cast<size_t>(index)]), taken);
  }
  RNICD_ASSIGN_OR_RETURN(const core::Inheritance inheritance, InheritanceOf(given.contents));
  RNICD_RETURN_IF_ERROR(inherited_.Take(inheritance));
  parts_.callbacks.on_counters(given.contents.counters());
  parts_.callbacks.on_pages(UniqueSocket(taken.pages.Release()), given.contents.page_address());
  parts_.logger.Info("takes over", {{"generation", generation_},
                                    {"version", given.contents.version()},
                                    {"processes", inheritance.processes.size()},
                                    {"grants", inheritance.grants.size()}});
  return taken;
}

absl::Status TakingSide::Serve(Listener listener) {
  listener_ = std::move(listener);
  return predecessor_->Serve(*this);
}

bool TakingSide::Route(const transport::AdmittedConnection& connection) {
  if (!inherited_.Owns(connection.peer.caller.process)) {
    return false;
  }
  const transport::SocketKind& kind = connection.socket->kind();
  return predecessor_->Route(FileOf(kind.door, kind.tenant != nullptr ? kind.tenant->grant() : GrantId()),
                             transport::ClientSocket::DescriptorOf(connection.socket));
}

void TakingSide::OnProcessEnded(const v1::HandoverProcess& process) {
  inherited_.Gone(FromWire(process));
  listener_.on_process_ended(FromWire(process));
}

v1::HandoverUse TakingSide::Grow(const v1::HandoverUse& wanted) {
  v1::HandoverUse granted;
  MutexLock lock(mutex_);
  for (const v1::HandoverHeld& held : wanted.held()) {
    core::HeldUse use = FromWire(held);
    if (frozen_) {
      use.held = {};
    }
    *granted.add_held() = ToWire(inherited_.Grow(use));
  }
  return granted;
}

void TakingSide::Shrink(const v1::HandoverUse& shrunk) {
  for (const v1::HandoverHeld& held : shrunk.held()) {
    inherited_.Shrink(FromWire(held));
  }
}

void TakingSide::OnCounters(const std::string& text, const v1::HandoverCounters& generations) {
  parts_.callbacks.on_counters(text);
  std::vector<core::OlderGeneration> reported;
  for (const v1::HandoverGeneration& each : generations.generations()) {
    reported.push_back({.generation = each.generation(),
                        .sessions = each.sessions(),
                        .deadline = clock_.Now() + std::chrono::milliseconds(each.remaining_ms())});
  }
  MutexLock lock(mutex_);
  generations_ = std::move(reported);
}

void TakingSide::OnPredecessorEnded() {
  inherited_.Drop();
  {
    MutexLock lock(mutex_);
    generations_.clear();
  }
  ended_.store(true);
  listener_.on_ended();
  parts_.logger.Info("the older generation has ended", {{"generation", generation_}});
}

}  // namespace rnicd::app
