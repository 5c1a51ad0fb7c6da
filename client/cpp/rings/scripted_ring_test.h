#pragma once

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "base/files/unique_fd.h"
#include "base/system/os.h"
#include "client/cpp/rings/ring_channel.h"
#include "gtest/gtest.h"
#include "ring/daemon_end.h"
#include "ring/shared_word.h"

namespace rnicd::inline client {

// The daemon's end of a ring, in the hands of a test.
// Threads: as DaemonEnd.
class ScriptedRing {
 public:
  explicit ScriptedRing(uint32_t entries) : geometry_(*ring::MakeRingGeometry(entries, ring::kPayloadBytesMin)) {
    EXPECT_EQ(ftruncate(file_.get(), static_cast<off_t>(geometry_.file_bytes())), 0);
    mapping_ = *SystemOs().Map(file_.get(), geometry_.file_bytes());
    end_.emplace(mapping_, geometry_);
  }
  ScriptedRing(const ScriptedRing&) = delete;
  ScriptedRing& operator=(const ScriptedRing&) = delete;
  ~ScriptedRing() { EXPECT_TRUE(SystemOs().Unmap(mapping_).ok()); }

  std::unique_ptr<RingChannel> Open(std::chrono::milliseconds deadline = std::chrono::seconds(20)) {
    absl::StatusOr<SharedMapping> mapping = SharedMapping::Map(file_.get(), geometry_.file_bytes());
    return *RingChannel::Open(*std::move(mapping), UniqueFd(dup(doorbell_.get())),
                              {.deadline = deadline, .spin_max = std::chrono::microseconds(20)});
  }

  ring::DaemonEnd& end() { return *end_; }
  // Bytes that wait on the doorbell.
  uint64_t Doorbells() {
    uint64_t count = 0;
    return read(doorbell_.get(), &count, sizeof(count)) == sizeof(count) ? count : 0;
  }
  // Waits for the next entry, and takes it.
  ring::Submission Take() {
    const ring::Submission entry = Next();
    end_->Pop();
    return entry;
  }
  ring::Submission TakeWithoutOutcome() {
    const ring::Submission entry = Next();
    end_->Pop(/*has_outcome=*/false);
    return entry;
  }
  // Waits until so many entries wait, and takes all; those before the last have no outcome.
  ring::Submission TakeNth(uint32_t count) {
    auto& header = *reinterpret_cast<ring::RingHeader*>(mapping_.data());
    while (ring::LoadAcquire(header.submission_tail) - header.submission_head != count) {
      std::this_thread::yield();
    }
    while (--count != 0) {
      TakeWithoutOutcome();
    }
    return Take();
  }
  // Completes an entry with success; `local_token` distinguishes outcomes.
  void Complete(const ring::Submission& entry, uint32_t local_token) {
    end_->Complete({.user_data = entry.user_data, .opcode = entry.opcode, .local_token = local_token});
  }
  // Writes the name behind the tokens, and refuses the entry.
  void Refuse(const ring::Submission& entry, ring::Outcome outcome, uint32_t tokens, std::string_view field) {
    end_->WriteResult(entry.result_offset + tokens * static_cast<uint32_t>(sizeof(uint32_t)),
                      std::as_bytes(std::span(field)));
    outcome.user_data = entry.user_data;
    outcome.opcode = entry.opcode;
    outcome.field_bytes = static_cast<uint32_t>(field.size());
    end_->Complete(outcome);
  }

 private:
  ring::Submission Next() {
    ring::Submission entry;
    while (end_->Peek(&entry) != ring::DaemonEnd::Next::kEntry) {
      std::this_thread::yield();
    }
    return entry;
  }

  const ring::RingGeometry geometry_;
  const UniqueFd file_{memfd_create("ring", MFD_CLOEXEC)};
  const UniqueFd doorbell_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::span<std::byte> mapping_;
  std::optional<ring::DaemonEnd> end_;
};

}  // namespace rnicd::inline client
