#include "tests/support/calls/ring_client.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

// Longer than any name of a field.
constexpr uint32_t kFieldBytesMax = 96;
// A daemon that was killed wakes nobody.
constexpr std::chrono::milliseconds kSleepMax{100};

uint32_t ResultBytes(uint32_t tokens) {
  const size_t bytes = tokens * sizeof(uint32_t) + kFieldBytesMax;
  return static_cast<uint32_t>((bytes + ring::kPayloadUnit - 1) / ring::kPayloadUnit * ring::kPayloadUnit);
}

size_t BytesOf(const RingRequest& request) { return request.payload.size() + ResultBytes(request.tokens); }

std::optional<ring::ClientEnd> EndOf(const SharedMapping& mapping) {
  const absl::StatusOr<ring::ClientEnd> end = ring::ClientEnd::Open(mapping.bytes());
  EXPECT_TRUE(end.ok()) << "the memory of OpenRing is not a ring: " << end.status();
  return end.ok() ? std::optional(*end) : std::nullopt;
}

}  // namespace

RingClient::RingClient(const UniqueFd& memory, uint64_t file_bytes, UniqueFd doorbell)
    : mapping_(memory.get(), file_bytes), doorbell_(std::move(doorbell)), end_(EndOf(mapping_)) {}

bool RingClient::Holds(const RingRequest& request) const {
  return end_.has_value() && BytesOf(request) <= end_->max_payload();
}

uint32_t RingClient::end_reason() const { return end_.has_value() ? end_->end_reason() : 0; }

std::optional<RingReply> RingClient::Execute(const RingRequest& request) {
  const Deadline deadline = std::chrono::steady_clock::now() + kTimeout;
  MutexLock lock(mutex_);
  std::optional<uint32_t> offset;
  if (!ReadUntil([&] { return (offset = end_->Reserve(static_cast<uint32_t>(BytesOf(request)))).has_value(); },
                 deadline)) {
    return std::nullopt;
  }
  const uint32_t number = Submit(request, *offset);
  if (!ReadUntil([&]() RNICD_REQUIRES(mutex_) { return replies_.contains(number); }, deadline)) {
    outstanding_.erase(number);
    return std::nullopt;
  }
  RingReply reply = std::move(replies_.at(number));
  replies_.erase(number);
  return reply;
}

uint32_t RingClient::Submit(const RingRequest& request, uint32_t offset) {
  const auto payload_bytes = static_cast<uint32_t>(request.payload.size());
  ring::Submission entry = request.entry;
  entry.payload_offset = offset;
  entry.payload_bytes = payload_bytes;
  entry.result_offset = offset + payload_bytes;
  entry.result_bytes = ResultBytes(request.tokens);
  std::ranges::copy(request.payload, end_->payload(offset, payload_bytes).begin());
  // What the daemon does not write must not look like tokens of an earlier request.
  std::ranges::fill(end_->payload(entry.result_offset, entry.result_bytes), std::byte{0});
  bool doorbell = false;
  const uint32_t number = end_->Submit(entry, &doorbell);
  outstanding_[number] = {.result_offset = entry.result_offset, .tokens = request.tokens};
  if (doorbell) {
    const uint64_t one = 1;
    EXPECT_EQ(write(doorbell_.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  }
  return number;
}

bool RingClient::ReadUntil(const std::function<bool()>& condition, Deadline deadline) {
  while (true) {
    // Read first: an outcome that is found after it was there before the end.
    const uint32_t reason = end_->end_reason();
    ReadOutcomes();
    if (condition()) {
      return true;
    }
    const auto now = std::chrono::steady_clock::now();
    if (reason != 0 || now >= deadline) {
      return false;
    }
    if (reading_) {
      changed_.WaitUntil(mutex_, std::min(deadline, now + kSleepMax));
    } else {
      SleepUntilOutcome();
    }
  }
}

void RingClient::ReadOutcomes() {
  while (const std::optional<ring::Outcome> outcome = end_->Poll()) {
    const auto found = outstanding_.find(outcome->user_data);
    if (found == outstanding_.end()) {
      ADD_FAILURE() << "an outcome of request " << outcome->user_data << ", which has none to come";
      continue;
    }
    const auto [result_offset, tokens] = found->second;
    const std::byte* const result = end_->payload(result_offset, ResultBytes(tokens)).data();
    RingReply& reply = replies_[outcome->user_data];
    reply.outcome = *outcome;
    reply.tokens.resize(tokens);
    if (tokens != 0) {
      std::memcpy(reply.tokens.data(), result, tokens * sizeof(uint32_t));
    }
    EXPECT_LE(outcome->field_bytes, kFieldBytesMax);
    reply.field.assign(reinterpret_cast<const char*>(result) + tokens * sizeof(uint32_t),
                       std::min(outcome->field_bytes, kFieldBytesMax));
    outstanding_.erase(found);
    changed_.NotifyAll();
  }
}

void RingClient::SleepUntilOutcome() {
  if (const std::optional<uint32_t> wakes = end_->PrepareToSleep(); wakes.has_value()) {
    reading_ = true;
    mutex_.Unlock();
    end_->Sleep(*wakes, kSleepMax);
    mutex_.Lock();
    reading_ = false;
    changed_.NotifyAll();
  }
  end_->StopWaiting();
}

}  // namespace rnicd::test
