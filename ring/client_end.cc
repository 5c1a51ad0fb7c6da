#include "ring/client_end.h"

#include <cstring>

#include "base/status.h"
#include "ring/shared_word.h"
#include "ring/wakeup.h"

namespace rnicd::ring {
namespace {

bool Matches(const Description& description, const RingGeometry& geometry, size_t file_bytes) {
  return description.magic == kRingMagic && description.version == kVersion &&
         description.submission_offset >= sizeof(RingHeader) && IsPowerOfTwo(geometry.entries) &&
         geometry.payload_bytes != 0 && geometry.payload_bytes % kPayloadUnit == 0 &&
         geometry.file_bytes() <= file_bytes &&
         geometry.submission_offset + size_t{geometry.entries} * kEntryBytes <= file_bytes &&
         geometry.completion_offset + size_t{geometry.entries} * kEntryBytes <= file_bytes;
}

absl::StatusOr<RingGeometry> GeometryOf(std::span<const std::byte> file) {
  Description description;
  if (file.size() < sizeof(RingHeader)) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "ring");
  }
  std::memcpy(&description, file.data(), sizeof(description));
  const RingGeometry geometry{.entries = description.entries,
                              .submission_offset = description.submission_offset,
                              .completion_offset = description.completion_offset,
                              .payload_offset = description.payload_offset,
                              .payload_bytes = description.payload_bytes};
  if (!Matches(description, geometry, file.size())) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "ring");
  }
  return geometry;
}

bool HasItsPayload(const Submission& entry, const RingGeometry& geometry) {
  return entry.payload_offset % kPayloadUnit == 0 && entry.payload_offset <= geometry.payload_bytes &&
         entry.payload_bytes <= geometry.payload_bytes - entry.payload_offset;
}

}  // namespace

absl::StatusOr<ClientEnd> ClientEnd::Open(std::span<std::byte> file) {
  RNICD_ASSIGN_OR_RETURN(const RingGeometry geometry, GeometryOf(file));
  return ClientEnd(file, geometry);
}

ClientEnd::ClientEnd(std::span<std::byte> file, const RingGeometry& geometry)
    : file_(file),
      geometry_(geometry),
      slots_(geometry.entries),
      next_(LoadAcquire(header().submission_tail)),
      oldest_(next_),
      read_(LoadAcquire(header().completion_tail)) {}

// What does not fit before the end of the area begins at its start again. So does what follows when nothing is in use:
// otherwise bytes that fit nowhere but at the start would never be free.
std::optional<uint32_t> ClientEnd::ReserveFree(uint32_t bytes, uint32_t leave) {
  if (next_ - oldest_ + leave >= geometry_.entries || bytes > geometry_.payload_bytes) {
    return std::nullopt;
  }
  if (oldest_ == next_) {
    reserved_ = 0;
    freed_ = 0;
  }
  const auto offset = static_cast<uint32_t>(reserved_ % geometry_.payload_bytes);
  const uint32_t behind = geometry_.payload_bytes - offset;
  const uint32_t skipped = bytes > behind ? behind : 0;
  if (reserved_ + skipped + bytes - freed_ > geometry_.payload_bytes) {
    return std::nullopt;
  }
  reserved_ += skipped + bytes;
  return skipped != 0 ? 0 : offset;
}

std::optional<uint32_t> ClientEnd::Reserve(uint32_t bytes, uint32_t leave) {
  std::optional<uint32_t> offset = ReserveFree(bytes, leave);
  if (!offset.has_value()) {
    FreeOldest();
    offset = ReserveFree(bytes, leave);
  }
  return offset;
}

void ClientEnd::FreeOldest() {
  taken_ = LoadAcquire(header().submission_head);
  for (; oldest_ != next_; ++oldest_) {
    const Slot& slot = slots_[oldest_ & (geometry_.entries - 1)];
    const bool is_taken = taken_ - oldest_ - 1 < geometry_.entries;
    if (slot.has_outcome ? !slot.finished : !is_taken) {
      return;
    }
    freed_ = slot.payload_end;
  }
}

std::span<std::byte> ClientEnd::payload(uint32_t offset, uint32_t bytes) const {
  return file_.subspan(size_t{geometry_.payload_offset} + offset, bytes);
}

uint32_t ClientEnd::Submit(Submission entry, bool* doorbell) {
  const uint32_t number = next_++;
  entry.user_data = number;
  const size_t slot = number & (geometry_.entries - 1);
  const bool has_outcome = HasOutcome(entry);
  slots_[slot] = {.payload_end = reserved_, .has_outcome = has_outcome};
  unfinished_ += has_outcome ? 1 : 0;
  std::memcpy(file_.data() + geometry_.submission_offset + slot * kEntryBytes, &entry, sizeof(entry));
  StoreInOrder(header().submission_tail, next_);
  *doorbell = LoadInOrder(header().submission_wakeup) != 0;
  return number;
}

std::optional<Outcome> ClientEnd::Poll() {
  if (LoadAcquire(header().completion_tail) == read_) {
    return std::nullopt;
  }
  const size_t position = read_ & (geometry_.entries - 1);
  const auto outcome = CopyOf<Outcome>(file_.data() + geometry_.completion_offset + position * kEntryBytes);
  StoreRelease(header().completion_head, ++read_);
  --unfinished_;
  slots_[outcome.user_data & (geometry_.entries - 1)].finished = true;
  FreeOldest();
  return outcome;
}

bool ClientEnd::Announce(Wakeup wakeup) {
  StoreInOrder(header().completion_wakeup, static_cast<uint32_t>(wakeup));
  waiting_ = true;
  return LoadInOrder(header().completion_tail) != read_ || end_reason() != 0;
}

void ClientEnd::Wait(std::chrono::nanoseconds time) {
  if (const std::optional<uint32_t> wakes = PrepareToSleep(); wakes.has_value()) {
    Sleep(*wakes, time);
  }
  StopWaiting();
}

bool ClientEnd::Changed(uint32_t position) const {
  return LoadAcquire(header().completion_tail) != position || end_reason() != 0;
}

bool ClientEnd::HasTakenMore(uint32_t taken) const { return LoadAcquire(header().submission_head) != taken; }

std::optional<uint32_t> ClientEnd::PrepareToSleep() {
  const uint32_t wakes = LoadAcquire(header().completion_wakes);
  return Announce(Wakeup::kFutex) ? std::nullopt : std::optional(wakes);
}

void ClientEnd::Sleep(uint32_t wakes, std::chrono::nanoseconds time) const {
  FutexWait(header().completion_wakes, wakes, time);
}

bool ClientEnd::PrepareToWait() { return Announce(Wakeup::kPipe); }

void ClientEnd::StopWaiting() {
  if (waiting_) {
    StoreRelaxed(header().completion_wakeup, 0);
    waiting_ = false;
  }
}

uint32_t ClientEnd::end_reason() const { return LoadInOrder(header().end_reason); }

void ClientEnd::SetCpu(uint32_t cpu_plus_one) { StoreRelaxed(header().client_cpu, cpu_plus_one); }

uint32_t ClientEnd::daemon_cpu() const { return LoadRelaxed(header().daemon_cpu); }

std::vector<Submission> NotTaken(std::span<std::byte> file) {
  std::vector<Submission> entries;
  const absl::StatusOr<RingGeometry> geometry = GeometryOf(file);
  if (!geometry.ok()) {
    return entries;
  }
  RingHeader& header = *reinterpret_cast<RingHeader*>(file.data());
  const uint32_t begin = LoadAcquire(header.submission_head);
  const uint32_t end = LoadRelaxed(header.submission_tail);
  if (end - begin > geometry->entries) {
    return entries;
  }
  for (uint32_t number = begin; number != end; ++number) {
    const size_t slot = number & (geometry->entries - 1);
    const auto entry = CopyOf<Submission>(file.data() + geometry->submission_offset + slot * kEntryBytes);
    if (!HasOutcome(entry) && HasItsPayload(entry, *geometry)) {
      entries.push_back(entry);
    }
  }
  return entries;
}

}  // namespace rnicd::ring
