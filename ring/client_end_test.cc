#include "ring/client_end.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/status.h"
#include "ring/daemon_end.h"
#include "ring/ring_fixture_test.h"
#include "ring/shared_word.h"

namespace rnicd::ring {
namespace {

// Both ends of a ring.
class ClientEndTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint32_t kEntries = 4;

  uint32_t Submit(const Submission& entry = {}) {
    bool doorbell = false;
    return client_.Submit(entry, &doorbell);
  }
  // Takes everything that there is, and returns its user_data.
  std::vector<uint64_t> TakeAll() {
    std::vector<uint64_t> taken;
    Submission entry;
    DaemonEnd::Next next;
    while ((next = daemon_.Peek(&entry)) == DaemonEnd::Next::kEntry) {
      daemon_.Pop();
      taken.push_back(entry.user_data);
    }
    EXPECT_EQ(next, DaemonEnd::Next::kNothing);
    return taken;
  }
  void ServeAll() {
    for (const uint64_t user_data : TakeAll()) {
      daemon_.Complete({.user_data = user_data});
    }
  }
  // Reserves and submits.
  std::optional<uint32_t> Use(uint32_t bytes) {
    const std::optional<uint32_t> offset = client_.Reserve(bytes);
    if (offset.has_value()) {
      EXPECT_LE(*offset + bytes, geometry_.payload_bytes);
      Submit({.payload_offset = *offset, .payload_bytes = bytes});
    }
    return offset;
  }
  static ClientEnd MustOpen(std::span<std::byte> file) {
    absl::StatusOr<ClientEnd> client = ClientEnd::Open(file);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  const uint32_t first_ = GetParam();
  const RingGeometry geometry_ = MustMakeRing(kEntries);
  const SharedBytes memory_ = RingMemory(geometry_, first_);
  DaemonEnd daemon_{memory_.all(), geometry_};
  ClientEnd client_ = MustOpen(memory_.all());
};

INSTANTIATE_TEST_SUITE_P(From, ClientEndTest, testing::Values(0U, kBeforeTheWrap, UINT32_MAX));

TEST_P(ClientEndTest, ARequestTravelsThereAndBack) {
  const std::optional<uint32_t> offset = client_.Reserve(16);
  ASSERT_TRUE(offset.has_value());
  std::memcpy(client_.payload(*offset, 16).data(), "sixteen bytes...", 16);
  bool doorbell = false;
  const uint32_t number =
      client_.Submit({.opcode = Opcode::kPost, .payload_offset = *offset, .payload_bytes = 16}, &doorbell);
  EXPECT_EQ(number, first_);
  EXPECT_TRUE(doorbell);
  EXPECT_EQ(client_.unfinished(), 1u);
  EXPECT_FALSE(client_.Poll().has_value());

  Submission entry;
  ASSERT_EQ(daemon_.Peek(&entry), DaemonEnd::Next::kEntry);
  EXPECT_EQ(entry.opcode, Opcode::kPost);
  std::vector<uint64_t> payload(2);
  daemon_.CopyPayload(entry.payload_offset, entry.payload_bytes, payload);
  EXPECT_EQ(std::memcmp(payload.data(), "sixteen bytes...", 16), 0);
  daemon_.Pop();
  daemon_.WriteResult(entry.payload_offset, std::as_bytes(std::span("RESULT")));
  daemon_.Complete({.user_data = entry.user_data, .status = 3, .posted = 1});

  const std::optional<Outcome> outcome = client_.Poll();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->user_data, number);
  EXPECT_EQ(outcome->status, 3u);
  EXPECT_EQ(outcome->posted, 1u);
  EXPECT_EQ(std::memcmp(client_.payload(*offset, 16).data(), "RESULT", 6), 0);
  EXPECT_EQ(client_.unfinished(), 0u);
}

TEST_P(ClientEndTest, ADaemonThatIsAwakeNeedsNoDoorbell) {
  daemon_.StayAwake();
  bool doorbell = true;
  client_.Submit({}, &doorbell);
  EXPECT_FALSE(doorbell);
  TakeAll();
  EXPECT_FALSE(daemon_.PrepareToSleep());
  client_.Submit({}, &doorbell);
  EXPECT_TRUE(doorbell);
}

TEST_P(ClientEndTest, ARequestWithoutOutcomeKeepsItsRoomUntilItIsTaken) {
  const Submission without{.opcode = Opcode::kPost, .flags = kFlagNoOutcome};
  const uint32_t bytes = client_.max_payload() / kEntries;
  for (uint32_t number = 0; number < kEntries; ++number) {
    ASSERT_TRUE(client_.Reserve(bytes).has_value());
    Submit(without);
  }
  EXPECT_EQ(client_.unfinished(), 0u);
  EXPECT_FALSE(client_.Reserve(0).has_value());
  Submission entry;
  ASSERT_EQ(daemon_.Peek(&entry), DaemonEnd::Next::kEntry);
  daemon_.Pop(HasOutcome(entry));
  EXPECT_EQ(daemon_.unfinished(), 0u);
  EXPECT_FALSE(client_.Reserve(bytes, 1).has_value()) << "one slot is to stay free";
  EXPECT_TRUE(client_.Reserve(bytes).has_value());
  EXPECT_FALSE(client_.Reserve(bytes).has_value());
}

TEST_P(ClientEndTest, OutcomesAreCountedAloneWhereOthersHaveNone) {
  const Submission without{.opcode = Opcode::kPost, .flags = kFlagNoOutcome};
  for (uint32_t round = 0; round < 3 * kEntries; ++round) {
    ASSERT_TRUE(client_.Reserve(0).has_value());
    Submit(without);
    ASSERT_TRUE(client_.Reserve(0).has_value());
    const uint32_t number = Submit({});
    for (Submission entry; daemon_.Peek(&entry) == DaemonEnd::Next::kEntry;) {
      daemon_.Pop(HasOutcome(entry));
      if (HasOutcome(entry)) {
        daemon_.Complete({.user_data = entry.user_data});
      }
    }
    EXPECT_EQ(client_.Poll()->user_data, number);
    EXPECT_FALSE(client_.Poll().has_value());
  }
}

TEST_P(ClientEndTest, NoMoreRequestsThanEntriesAreOutstanding) {
  for (uint32_t number = 0; number < kEntries; ++number) {
    EXPECT_TRUE(Use(0).has_value());
  }
  EXPECT_FALSE(client_.Reserve(0).has_value());
  ServeAll();
  EXPECT_FALSE(client_.Reserve(0).has_value());
  ASSERT_TRUE(client_.Poll().has_value());
  EXPECT_TRUE(client_.Reserve(0).has_value());
}

TEST_P(ClientEndTest, OutcomesOutOfOrderFreeTheWindowInOrder) {
  for (uint32_t number = 0; number < kEntries; ++number) {
    ASSERT_TRUE(Use(0).has_value());
  }
  const std::vector<uint64_t> taken = TakeAll();
  ASSERT_EQ(taken.size(), kEntries);
  for (const size_t index : {2, 1, 3}) {
    daemon_.Complete({.user_data = taken[index]});
    const std::optional<Outcome> outcome = client_.Poll();
    ASSERT_TRUE(outcome.has_value());
    EXPECT_EQ(outcome->user_data, taken[index]);
    // The oldest request still has its slot, and no other can have it.
    EXPECT_FALSE(client_.Reserve(0).has_value());
  }
  daemon_.Complete({.user_data = taken[0]});
  ASSERT_TRUE(client_.Poll().has_value());
  for (uint32_t number = 0; number < kEntries; ++number) {
    EXPECT_TRUE(Use(0).has_value());
  }
}

TEST_P(ClientEndTest, PayloadOfRequestsDoesNotOverlap) {
  const uint32_t third = geometry_.payload_bytes / 3 / kPayloadUnit * kPayloadUnit;
  EXPECT_EQ(Use(third), 0u);
  EXPECT_EQ(Use(third), third);
  EXPECT_EQ(Use(third), 2 * third);
  EXPECT_FALSE(Use(third).has_value());
}

TEST_P(ClientEndTest, PayloadBeginsAgainAtTheStart) {
  const uint32_t third = geometry_.payload_bytes / 3 / kPayloadUnit * kPayloadUnit;
  ASSERT_TRUE(Use(third).has_value());
  ASSERT_TRUE(Use(third).has_value());
  ServeAll();
  ASSERT_TRUE(client_.Poll().has_value());
  // Too long for what is left at the end, and not for what is free at the start.
  EXPECT_EQ(Use(third - kPayloadUnit), 2 * third);
  EXPECT_EQ(Use(third), 0u);
  EXPECT_FALSE(Use(kPayloadUnit).has_value());
}

TEST_P(ClientEndTest, PayloadOfRequestsThatEndOutOfOrderIsFreeWithTheOldest) {
  const uint32_t half = geometry_.payload_bytes / 2;
  ASSERT_TRUE(Use(half).has_value());
  ASSERT_TRUE(Use(half).has_value());
  const std::vector<uint64_t> taken = TakeAll();
  daemon_.Complete({.user_data = taken[1]});
  ASSERT_TRUE(client_.Poll().has_value());
  EXPECT_FALSE(Use(kPayloadUnit).has_value());
  daemon_.Complete({.user_data = taken[0]});
  ASSERT_TRUE(client_.Poll().has_value());
  EXPECT_TRUE(Use(2 * half).has_value());
}

TEST_P(ClientEndTest, ARequestMayUseTheWholeAreaWhereverTheLastOneEnded) {
  for (uint32_t bytes = 0; bytes <= geometry_.payload_bytes; bytes += 1000) {
    ASSERT_TRUE(Use(bytes / kPayloadUnit * kPayloadUnit).has_value());
    ServeAll();
    ASSERT_TRUE(client_.Poll().has_value());
    EXPECT_EQ(Use(client_.max_payload()), 0u);
    ServeAll();
    ASSERT_TRUE(client_.Poll().has_value());
  }
  EXPECT_FALSE(client_.Reserve(client_.max_payload() + kPayloadUnit).has_value());
}

TEST_P(ClientEndTest, NoByteOfManyRequestsIsUsedTwice) {
  // Each byte of the area, and the request that uses it plus 1.
  std::vector<uint64_t> owner(geometry_.payload_bytes);
  std::vector<std::pair<uint32_t, uint32_t>> parts(kEntries);
  std::vector<uint64_t> outstanding;
  uint32_t random = 12345;
  for (uint32_t step = 0; step < 20'000; ++step) {
    random = random * 1664525 + 1013904223;
    const uint32_t bytes = (random >> 8) % (geometry_.payload_bytes / 2) / kPayloadUnit * kPayloadUnit;
    if (const std::optional<uint32_t> offset = client_.Reserve(bytes); offset.has_value()) {
      const uint32_t number = Submit();
      for (uint32_t byte = *offset; byte < *offset + bytes; ++byte) {
        ASSERT_EQ(owner[byte], 0u) << "step " << step;
        owner[byte] = uint64_t{number} + 1;
      }
      parts[number % kEntries] = {*offset, bytes};
      const std::vector<uint64_t> taken = TakeAll();
      outstanding.insert(outstanding.end(), taken.begin(), taken.end());
    } else {
      ASSERT_FALSE(outstanding.empty()) << "step " << step;
    }
    if (!outstanding.empty() && (random & 3) != 0) {
      const size_t which = (random >> 4) % outstanding.size();
      const uint64_t number = outstanding[which];
      outstanding.erase(outstanding.begin() + static_cast<ptrdiff_t>(which));
      const auto [begin, size] = parts[number % kEntries];
      std::fill_n(owner.begin() + begin, size, 0);
      daemon_.Complete({.user_data = number});
      ASSERT_EQ(client_.Poll()->user_data, number);
    }
  }
}

TEST_P(ClientEndTest, ManyRequestsTravelAcrossTheWrap) {
  uint32_t number = first_;
  for (uint32_t round = 0; round < 100; ++round) {
    const uint32_t count = round % kEntries + 1;
    for (uint32_t index = 0; index < count; ++index) {
      ASSERT_TRUE(Use(8 * index).has_value());
    }
    ServeAll();
    for (uint32_t index = 0; index < count; ++index) {
      const std::optional<Outcome> outcome = client_.Poll();
      ASSERT_TRUE(outcome.has_value());
      EXPECT_EQ(outcome->user_data, number++);
    }
    EXPECT_FALSE(client_.Poll().has_value());
  }
}

// --- Waiting ---

TEST_P(ClientEndTest, AnOutcomeOrTheEndNeedsNoWait) {
  ASSERT_TRUE(Use(0).has_value());
  ServeAll();
  client_.Wait(kForever);
  EXPECT_TRUE(client_.PrepareToWait());
  ASSERT_TRUE(client_.Poll().has_value());
  EXPECT_FALSE(client_.PrepareToWait());
  client_.StopWaiting();
  daemon_.End(191);
  client_.Wait(kForever);
  EXPECT_TRUE(client_.PrepareToWait());
  EXPECT_EQ(client_.end_reason(), 191u);
}

TEST_P(ClientEndTest, WhatAnEndedRingHasNotTakenIsInItsMemory) {
  const auto submit = [&](uint64_t object, uint16_t flags) {
    Submit({.opcode = Opcode::kPost, .flags = flags, .object = object});
  };
  submit(1, kFlagNoOutcome);
  Submission entry;
  ASSERT_EQ(daemon_.Peek(&entry), DaemonEnd::Next::kEntry);
  daemon_.Pop(/*has_outcome=*/false);
  submit(2, kFlagNoOutcome);
  submit(3, 0);
  submit(4, kFlagNoOutcome);
  // Its payload is nowhere, as in a ring that its program has overwritten.
  Submit({.opcode = Opcode::kPost,
          .flags = kFlagNoOutcome,
          .payload_offset = geometry_.payload_bytes - 8,
          .payload_bytes = 16});
  daemon_.End(191);
  std::vector<uint64_t> objects;
  for (const Submission& left : NotTaken(memory_.all())) {
    objects.push_back(left.object);
  }
  EXPECT_EQ(objects, (std::vector<uint64_t>{2, 4}));
  StoreRelease(reinterpret_cast<RingHeader*>(memory_.all().data())->submission_tail, first_ + kEntries + 2);
  EXPECT_TRUE(NotTaken(memory_.all()).empty());
}

TEST_P(ClientEndTest, AWaitEndsWithItsTime) {
  client_.Wait(std::chrono::milliseconds(1));
  EXPECT_FALSE(client_.Poll().has_value());
}

TEST_P(ClientEndTest, OnlyAClientThatWaitsGetsAByte) {
  for (int request = 0; request < 3; ++request) {
    ASSERT_TRUE(Use(0).has_value());
    TakeAll();
  }
  EXPECT_FALSE(daemon_.Complete({}));
  ASSERT_TRUE(client_.Poll().has_value());
  EXPECT_FALSE(client_.PrepareToWait());
  EXPECT_TRUE(daemon_.Complete({}));
  client_.StopWaiting();
  EXPECT_FALSE(daemon_.Complete({}));
  EXPECT_FALSE(daemon_.End(1));
}

// --- Files that are no rings ---

TEST_P(ClientEndTest, AFileOfAnotherKindOrVersionIsRefused) {
  const auto refused_with = [&](auto change) {
    auto& header = memory_.header<RingHeader>();
    const Description before = header.description;
    change(header.description);
    const bool refused = FailedWith(ClientEnd::Open(memory_.all()).status(), ErrorReason::FIELD_OUT_OF_RANGE);
    header.description = before;
    return refused;
  };
  EXPECT_FALSE(refused_with([](Description&) {}));
  EXPECT_TRUE(refused_with([](Description& it) { it.magic = kQueueMagic; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.version = kVersion + 1; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.entries = 0; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.entries = 3; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.entries = 1U << 31; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.submission_offset = 128; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.submission_offset = UINT32_MAX; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.completion_offset = UINT32_MAX; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.payload_offset = UINT32_MAX; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.payload_bytes = 0; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.payload_bytes += 8; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.payload_bytes -= 1; }));
}

TEST_P(ClientEndTest, AShortFileIsRefused) {
  for (const size_t bytes : {size_t{0}, size_t{40}, sizeof(RingHeader), geometry_.file_bytes() - 1}) {
    EXPECT_TRUE(FailedWith(ClientEnd::Open(memory_.all().first(bytes)).status(), ErrorReason::FIELD_OUT_OF_RANGE))
        << bytes;
  }
}

TEST_P(ClientEndTest, ALongerHeaderOfALaterDaemonIsSkipped) {
  // The same ring, with a line more before its entries.
  RingGeometry later = geometry_;
  later.submission_offset += kLineBytes;
  later.completion_offset += kLineBytes;
  later.payload_offset += kLineBytes;
  later.payload_bytes -= kLineBytes;
  const SharedBytes memory = RingMemory(later);
  DaemonEnd daemon(memory.all(), later);
  ClientEnd client = MustOpen(memory.all());
  ASSERT_TRUE(client.Reserve(later.payload_bytes).has_value());
  bool doorbell = false;
  client.Submit({.count = 5}, &doorbell);
  Submission entry;
  ASSERT_EQ(daemon.Peek(&entry), DaemonEnd::Next::kEntry);
  EXPECT_EQ(entry.count, 5u);
}

TEST_P(ClientEndTest, EachSideSeesTheOthersProcessor) {
  client_.SetCpu(3);
  EXPECT_EQ(daemon_.client_cpu(), 3u);
  daemon_.SetCpu(4);
  EXPECT_EQ(client_.daemon_cpu(), 4u);
}

}  // namespace
}  // namespace rnicd::ring
