#include "tests/simulation/world/shared_path.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/system/os.h"
#include "daemon/core/queue/mapped_results.h"
#include "daemon/core/tenant/heap_cost.h"

namespace rnicd::simulation {
namespace {

// Longer than any name of a field.
constexpr uint32_t kFieldBytesMax = 96;

uint32_t ResultBytes(uint32_t tokens) {
  const size_t bytes = tokens * sizeof(uint32_t) + kFieldBytesMax;
  return static_cast<uint32_t>((bytes + ring::kPayloadUnit - 1) / ring::kPayloadUnit * ring::kPayloadUnit);
}

}  // namespace

// Mapped by the kernel itself: the world counts and fails the daemon's mappings only.
ClientMapping::ClientMapping(const UniqueFd& file, uint64_t bytes) : bytes_(*SystemOs().Map(file.get(), bytes)) {}

ClientMapping::~ClientMapping() { (void)SystemOs().Unmap(bytes_); }

RingUser::RingUser(std::shared_ptr<core::Ring> ring, const UniqueFd& file, uint64_t bytes)
    : ring_(std::move(ring)), mapping_(file, bytes), end_(*ring::ClientEnd::Open(mapping_.bytes())) {}

bool RingUser::Reserve(const Request& request) {
  const size_t bytes = request.payload.size() + (ring::HasOutcome(request.entry) ? ResultBytes(request.tokens) : 0);
  reserved_ = bytes <= end_.max_payload() ? end_.Reserve(static_cast<uint32_t>(bytes)) : std::nullopt;
  return reserved_.has_value();
}

void RingUser::Submit(const Request& request, Done done) {
  const auto payload_bytes = static_cast<uint32_t>(request.payload.size());
  ring::Submission entry = request.entry;
  entry.payload_offset = *reserved_;
  entry.payload_bytes = payload_bytes;
  entry.result_offset = *reserved_ + payload_bytes;
  entry.result_bytes = ring::HasOutcome(entry) ? ResultBytes(request.tokens) : 0;
  std::ranges::copy(request.payload, end_.payload(*reserved_, payload_bytes).begin());
  std::ranges::fill(end_.payload(entry.result_offset, entry.result_bytes), std::byte{0});
  bool doorbell = false;
  const uint32_t number = end_.Submit(entry, &doorbell);
  if (ring::HasOutcome(entry)) {
    outstanding_[number] = {.result_offset = entry.result_offset, .tokens = request.tokens, .done = std::move(done)};
  }
  reserved_.reset();
}

void RingUser::Poll(Findings& findings) {
  while (const std::optional<ring::Outcome> outcome = end_.Poll()) {
    const auto found = outstanding_.find(outcome->user_data);
    if (found == outstanding_.end()) {
      findings.Report("EveryEntryHasOneOutcome",
                      "an outcome of request " + std::to_string(outcome->user_data) + ", which has none to come");
      return;
    }
    const Outstanding request = std::move(found->second);
    outstanding_.erase(found);
    request.done(Read(request, *outcome));
  }
}

RingUser::Reply RingUser::Read(const Outstanding& request, const ring::Outcome& outcome) const {
  const std::byte* const result = end_.payload(request.result_offset, ResultBytes(request.tokens)).data();
  Reply reply{.status = absl::OkStatus(), .outcome = outcome, .tokens = std::vector<uint32_t>(request.tokens)};
  if (request.tokens != 0) {
    std::memcpy(reply.tokens.data(), result, request.tokens * sizeof(uint32_t));
  }
  if (outcome.reason != 0) {
    const auto* const field = reinterpret_cast<const char*>(result) + request.tokens * sizeof(uint32_t);
    reply.status = MakeError(ErrorInfo{.reason = static_cast<ErrorReason>(outcome.reason),
                                       .field = std::string(field, std::min(outcome.field_bytes, kFieldBytesMax)),
                                       .limit = outcome.base_or_limit,
                                       .used = outcome.length_or_used,
                                       .requested = outcome.requested});
  }
  return reply;
}

ring::QueueReader MappedUser::OpenReader(const ClientMapping& mapping) {
  return *ring::QueueReader::Open(mapping.bytes());
}

uint64_t MappedUser::HeapOf(uint32_t depth_max) {
  return core::MappedResults::FileBytes(depth_max) + core::kHeapOfMappedQueue;
}

std::vector<Completion> MappedUser::Take(uint32_t max, Witness& witness) {
  const auto& header = *reinterpret_cast<const ring::QueueHeader*>(mapping_.bytes().data());
  if (max >= 2 && header.tail - reader_.position() >= 2 && witness.Plants(Canary::kMappedSwapped)) {
    SwapNextTwo();
  }
  std::vector<Completion> taken;
  Completion completion;
  while (taken.size() < max && reader_.Poll(&completion)) {
    taken.push_back(completion);
  }
  return taken;
}

void MappedUser::SwapNextTwo() {
  const auto& description = *reinterpret_cast<const ring::Description*>(mapping_.bytes().data());
  const auto slot = [&](uint32_t position) {
    return mapping_.bytes().subspan(
        description.completion_offset + size_t{position & (description.entries - 1)} * ring::kEntryBytes,
        ring::kEntryBytes);
  };
  std::ranges::swap_ranges(slot(reader_.position()), slot(reader_.position() + 1));
}

}  // namespace rnicd::simulation
