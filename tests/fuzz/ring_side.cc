#include "tests/fuzz/ring_side.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error_reason.h"
#include "base/files/unique_fd.h"
#include "daemon/core/session/session.h"
#include "ring/layout.h"
#include "ring/shared_word.h"
#include "tests/fuzz/check.h"

namespace rnicd::fuzz {
namespace {

// Far more than most entries need; what takes longer overlaps with the next steps.
constexpr std::chrono::milliseconds kWakeMax{20};

// What `get` returns of the session that has the object; invalid if none has.
template <typename Get>
UniqueFd FromAnySession(core::SessionRegistry& registry, Get get) {
  for (const core::SessionRegistry::Listed& listed : registry.List()) {
    const absl::StatusOr<core::SessionGuard> guard = listed.session->Begin();
    absl::StatusOr<UniqueFd> file = guard.ok() ? get(*guard) : absl::StatusOr<UniqueFd>(guard.status());
    if (file.ok()) {
      return *std::move(file);
    }
  }
  return UniqueFd();
}

}  // namespace

ClientMapping::ClientMapping(int file) {
  struct stat facts = {};
  if (fstat(file, &facts) != 0 || facts.st_size == 0) {
    return;
  }
  const auto size = static_cast<size_t>(facts.st_size);
  void* const mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Check(mapped != MAP_FAILED, "a client can map what the daemon shares");
  bytes_ = {static_cast<std::byte*>(mapped), size};
}

ClientMapping::~ClientMapping() {
  if (!bytes_.empty()) {
    munmap(bytes_.data(), bytes_.size());
  }
}

void ClientMapping::Write(size_t offset, std::string_view bytes) const {
  const size_t at = offset % bytes_.size();
  std::memcpy(bytes_.data() + at, bytes.data(), std::min(bytes.size(), bytes_.size() - at));
}

RingSide::Ring* RingSide::Find(RingId id) {
  const auto [found, is_new] = rings_.try_emplace(id.value);
  Ring& ring = found->second;
  if (is_new) {
    ring.memory = std::make_unique<ClientMapping>(FromAnySession(registry_, [id](const core::SessionGuard& guard) {
                                                    return guard.rings().Duplicate(id, core::SharedDescriptor::kMemory);
                                                  }).get());
    ring.doorbell = FromAnySession(registry_, [id](const core::SessionGuard& guard) {
      return guard.rings().Duplicate(id, core::SharedDescriptor::kDoorbell);
    });
  }
  return ring.memory->bytes().empty() ? nullptr : &ring;
}

ClientMapping* RingSide::Find(CompletionQueueId id) {
  std::unique_ptr<ClientMapping>& queue = queues_[id.value];
  if (queue == nullptr) {
    queue = std::make_unique<ClientMapping>(FromAnySession(registry_, [id](const core::SessionGuard& guard) {
                                              return guard.queues().Duplicate(id, core::SharedDescriptor::kMemory);
                                            }).get());
  }
  return queue->bytes().empty() ? nullptr : queue.get();
}

void RingSide::RingDoorbell(const Ring& ring) {
  const uint64_t one = 1;
  (void)!write(ring.doorbell.get(), &one, sizeof(one));
  // Until the daemon has taken what there is, so that the next step finds it.
  auto& header = *reinterpret_cast<ring::RingHeader*>(ring.memory->bytes().data());
  const auto deadline = std::chrono::steady_clock::now() + kWakeMax;
  while (std::chrono::steady_clock::now() < deadline && ring::LoadAcquire(header.end_reason) == 0 &&
         ring::LoadAcquire(header.submission_tail) != ring::LoadAcquire(header.completion_tail)) {
    std::this_thread::yield();
  }
}

void RingSide::Submit(RingId id, std::string_view entry) {
  Ring* const ring = Find(id);
  if (ring == nullptr) {
    return;
  }
  auto& header = *reinterpret_cast<ring::RingHeader*>(ring->memory->bytes().data());
  const ring::Description description = header.description;
  const uint32_t tail = ring::LoadAcquire(header.submission_tail);
  const uint32_t entries = std::max(description.entries, 1U);
  ring->memory->Write(description.submission_offset + size_t{tail & (entries - 1)} * ring::kEntryBytes,
                      entry.substr(0, ring::kEntryBytes));
  ring->memory->Write(description.payload_offset,
                      entry.substr(std::min(entry.size(), ring::kEntryBytes)).substr(0, description.payload_bytes));
  if (!ring->poked) {
    CheckOutcomes(*ring);
  }
  ring::StoreInOrder(header.completion_head, ring::LoadAcquire(header.completion_tail));
  ring::StoreInOrder(header.submission_tail, tail + 1);
  RingDoorbell(*ring);
}

void RingSide::Poke(RingId id, size_t offset, std::string_view bytes) {
  if (Ring* const ring = Find(id); ring != nullptr) {
    ring->poked = true;
    ring->memory->Write(offset, bytes);
    RingDoorbell(*ring);
  }
}

void RingSide::Scribble(CompletionQueueId id, size_t offset, std::string_view bytes) {
  if (const ClientMapping* const queue = Find(id); queue != nullptr) {
    queue->Write(offset, bytes);
  }
}

void RingSide::CheckOutcomes(const Ring& ring) {
  const std::span<std::byte> bytes = ring.memory->bytes();
  auto& header = *reinterpret_cast<ring::RingHeader*>(bytes.data());
  const ring::Description& description = header.description;
  const uint32_t tail = ring::LoadAcquire(header.completion_tail);
  for (uint32_t number = ring::LoadAcquire(header.completion_head); number != tail; ++number) {
    ring::Outcome outcome;
    const size_t slot = number & (description.entries - 1);
    std::memcpy(&outcome, bytes.data() + description.completion_offset + slot * ring::kEntryBytes, sizeof(outcome));
    Check((outcome.status == 0) == (outcome.reason == 0), "a refusal has a reason, and a success none");
    Check(outcome.reason != static_cast<uint32_t>(ErrorReason::INTERNAL_FAULT), "no entry is a fault of ours");
  }
}

}  // namespace rnicd::fuzz
