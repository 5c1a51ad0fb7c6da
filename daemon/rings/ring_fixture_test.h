#pragma once

// Shared fixture of the rings' unit tests: a node whose rings are served, and an owner that submits as a client would.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "base/system/os.h"
#include "daemon/core/queue/queue_fixture_test.h"
#include "daemon/rings/ring_threads.h"
#include "ring/chain.h"
#include "ring/client_end.h"
#include "ring/doorbell.h"

namespace rnicd::rings {

// A World with ring threads. Sessions that a test holds go before it.
class RingWorld : public core::World {
 public:
  explicit RingWorld(const core::WorldOptions& options = {}, const SpinOptions& spin = {},
                     const std::function<void()>& yield = std::this_thread::yield,
                     std::unique_ptr<const Clock> time = std::make_unique<SteadyClock>())
      : World(options), time_(std::move(time)), threads_(*RingThreads::Start(1, *time_, spin, yield)) {
    node.rings = threads_.get();
  }
  ~RingWorld() { Stop(); }
  core::RingCounts Counts() const { return threads_->Counts(); }

 private:
  const std::unique_ptr<const Clock> time_;
  std::unique_ptr<RingThreads> threads_;
};

// A client's mapping of a ring, and its end of it.
class RingClient {
 public:
  explicit RingClient(core::Session& session, uint32_t entries = 0) {
    const auto opened = session.Begin()->rings().Open(entries, 0);
    EXPECT_TRUE(opened.ok()) << opened.status();
    id = opened->ring;
    const UniqueFd memory = *session.Begin()->rings().Duplicate(id, core::SharedDescriptor::kMemory);
    doorbell_ = *session.Begin()->rings().Duplicate(id, core::SharedDescriptor::kDoorbell);
    pipe = *session.Begin()->rings().Duplicate(id, core::SharedDescriptor::kPipe);
    file = *SystemOs().Map(memory.get(), opened->file_bytes);
    end = *ring::ClientEnd::Open(file);
  }
  RingClient(const RingClient&) = delete;
  RingClient& operator=(const RingClient&) = delete;
  ~RingClient() { Unmap(); }
  void Unmap() {
    if (!file.empty()) {
      (void)SystemOs().Unmap(file);
      file = {};
    }
  }

  ring::RingHeader& header() const { return *reinterpret_cast<ring::RingHeader*>(file.data()); }
  void RingDoorbell() const { ring::RingDoorbell(doorbell_.get()); }

  void Submit(const ring::Submission& entry) {
    EXPECT_TRUE(end->Reserve(0).has_value()) << "the ring is full";
    Send(entry);
  }
  // Submits a chain, with room for its tokens and a field name behind it.
  void SubmitChain(QueuePairId pair, const std::vector<WorkRequest>& chain) {
    uint32_t bytes = 0;
    for (const WorkRequest& request : chain) {
      bytes += static_cast<uint32_t>(*ring::EncodedBytes(request));
    }
    const auto count = static_cast<uint32_t>(chain.size());
    const uint32_t result_bytes = (count * sizeof(uint32_t) + 64 + 7) / 8 * 8;
    const std::optional<uint32_t> offset = end->Reserve(bytes + result_bytes);
    ASSERT_TRUE(offset.has_value());
    std::byte* to = end->payload(*offset, bytes).data();
    for (const WorkRequest& request : chain) {
      to += ring::Encode(request, to);
    }
    result = end->payload(*offset + bytes, result_bytes);
    Send({.opcode = ring::Opcode::kPost,
          .flags = flags,
          .count = count,
          .object = pair.value,
          .payload_offset = *offset,
          .payload_bytes = bytes,
          .result_offset = *offset + bytes,
          .result_bytes = result_bytes});
  }
  void SubmitRegister(MemoryRegionId region, const MdlEntry& entry) {
    const std::optional<uint32_t> offset = end->Reserve(ring::kMdlBytes);
    ASSERT_TRUE(offset.has_value());
    ring::Encode(entry, end->payload(*offset, ring::kMdlBytes).data());
    Send({.opcode = ring::Opcode::kRegisterMr,
          .count = 1,
          .object = region.value,
          .length = entry.byte_count,
          .argument = 1,
          .payload_offset = *offset,
          .payload_bytes = ring::kMdlBytes});
  }

  // The next outcome; one with an impossible reason when none comes in time.
  ring::Outcome Next() {
    const Instant deadline = std::chrono::steady_clock::now() + kTimeout;
    std::optional<ring::Outcome> outcome = end->Poll();
    while (!outcome.has_value() && std::chrono::steady_clock::now() < deadline) {
      end->Wait(std::chrono::milliseconds(100));
      outcome = end->Poll();
    }
    EXPECT_TRUE(outcome.has_value()) << "no outcome came";
    return outcome.value_or(ring::Outcome{.status = UINT32_MAX, .reason = UINT32_MAX});
  }
  uint32_t Token(size_t index) const {
    uint32_t token = 0;
    std::memcpy(&token, result.data() + index * sizeof(token), sizeof(token));
    return token;
  }
  std::string Field(const ring::Outcome& outcome, size_t requests) const {
    const auto* const text = reinterpret_cast<const char*>(result.data() + requests * sizeof(uint32_t));
    return {text, outcome.field_bytes};
  }

  RingId id;
  // Flags of the chains that follow.
  uint16_t flags = 0;
  std::span<std::byte> file;
  std::span<std::byte> result;
  UniqueFd pipe;
  absl::StatusOr<ring::ClientEnd> end = absl::UnknownError("not open");

 private:
  void Send(const ring::Submission& entry) {
    bool doorbell = false;
    end->Submit(entry, &doorbell);
    if (doorbell) {
      RingDoorbell();
    }
  }

  UniqueFd doorbell_;
};

class RingTest : public testing::Test {
 protected:
  QueuePairId ConnectedPair() {
    const QueuePairId pair = owner_.Pair();
    EXPECT_TRUE(owner_.session->Begin()->pairs().Connect(pair, owner_.Address(pair)).ok());
    return pair;
  }

  RingWorld world_;
  core::QueueOwner owner_{world_};
  RingClient client_{*owner_.session};
};

inline uint32_t NumberOf(ErrorReason reason) { return static_cast<uint32_t>(reason); }

}  // namespace rnicd::rings
