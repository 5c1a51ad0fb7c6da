#include "ring/daemon_end.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <thread>
#include <vector>

#include "ring/ring_fixture_test.h"
#include "ring/shared_word.h"

namespace rnicd::ring {
namespace {

using Next = DaemonEnd::Next;

// A ring whose client writes arbitrary values.
class DaemonEndTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint32_t kEntries = 4;

  RingHeader& client() { return memory_.header<RingHeader>(); }
  // Writes entry `number`, counted from the first, without publishing it.
  void WriteEntry(uint32_t number, uint64_t user_data) {
    const Submission entry{.user_data = user_data, .opcode = Opcode::kPost, .count = number};
    const size_t slot = (first_ + number) % kEntries;
    std::memcpy(memory_.at(geometry_.submission_offset + slot * kEntryBytes), &entry, sizeof(entry));
  }
  void Submitted(uint32_t count) { StoreRelease(client().submission_tail, first_ + count); }
  void HaveRead(uint32_t count) { StoreRelease(client().completion_head, first_ + count); }
  void Submit(uint32_t number) {
    WriteEntry(number, number);
    Submitted(number + 1);
  }
  Next TakeOne() {
    Submission entry;
    const Next next = end_.Peek(&entry);
    if (next == Next::kEntry) {
      end_.Pop();
    }
    return next;
  }
  // Takes and completes so many entries, which the client reads.
  void Serve(uint32_t begin, uint32_t count) {
    for (uint32_t number = begin; number < begin + count; ++number) {
      Submit(number);
      ASSERT_EQ(TakeOne(), Next::kEntry);
      end_.Complete({.user_data = number});
      HaveRead(number + 1);
    }
  }

  const uint32_t first_ = GetParam();
  const RingGeometry geometry_ = MustMakeRing(kEntries);
  const SharedBytes memory_ = RingMemory(geometry_, first_);
  DaemonEnd end_{memory_.all(), geometry_};
};

// The first indices: those of a new ring, some that wrap around in the middle of a test, and the last one of all.
INSTANTIATE_TEST_SUITE_P(From, DaemonEndTest, testing::Values(0U, kBeforeTheWrap, UINT32_MAX - 1, UINT32_MAX));

TEST_P(DaemonEndTest, ANewRingHasADescriptionAndWantsADoorbell) {
  EXPECT_EQ(client().description.magic, kRingMagic);
  EXPECT_EQ(client().submission_wakeup, 1u);
  EXPECT_EQ(client().end_reason, 0u);
  EXPECT_EQ(TakeOne(), Next::kNothing);
  EXPECT_EQ(end_.unfinished(), 0u);
}

TEST_P(DaemonEndTest, EntriesAreTakenInOrder) {
  for (uint32_t number = 0; number < kEntries; ++number) {
    WriteEntry(number, 100 + number);
  }
  Submitted(kEntries);
  for (uint32_t number = 0; number < kEntries; ++number) {
    Submission entry;
    ASSERT_EQ(end_.Peek(&entry), Next::kEntry);
    EXPECT_EQ(entry.user_data, 100u + number);
    EXPECT_EQ(entry.opcode, Opcode::kPost);
    EXPECT_EQ(client().submission_head, first_ + number);
    end_.Pop();
    EXPECT_EQ(client().submission_head, first_ + number + 1);
    EXPECT_EQ(end_.unfinished(), number + 1);
  }
  EXPECT_EQ(TakeOne(), Next::kNothing);
}

TEST_P(DaemonEndTest, AnEntryIsCopied) {
  Submit(0);
  Submission entry;
  ASSERT_EQ(end_.Peek(&entry), Next::kEntry);
  WriteEntry(0, 666);
  EXPECT_EQ(entry.user_data, 0u);
}

TEST_P(DaemonEndTest, AnOutcomeIsWrittenBeforeItIsCounted) {
  Submit(0);
  ASSERT_EQ(TakeOne(), Next::kEntry);
  EXPECT_FALSE(end_.Complete({.user_data = 5, .status = 6, .posted = 7}));
  EXPECT_EQ(client().completion_tail, first_ + 1);
  Outcome outcome;
  std::memcpy(&outcome, memory_.at(geometry_.completion_offset + first_ % kEntries * kEntryBytes), sizeof(outcome));
  EXPECT_EQ(outcome.user_data, 5u);
  EXPECT_EQ(outcome.status, 6u);
  EXPECT_EQ(outcome.posted, 7u);
}

TEST_P(DaemonEndTest, SlotsAreUsedAgain) {
  Serve(0, 5 * kEntries + 3);
  EXPECT_EQ(client().submission_head, first_ + 5 * kEntries + 3);
  EXPECT_EQ(client().completion_tail, first_ + 5 * kEntries + 3);
  EXPECT_EQ(end_.unfinished(), 0u);
}

// --- Impossible indices ---

TEST_P(DaemonEndTest, ATailTooFarAheadBreaksTheRing) {
  Submitted(kEntries);
  Submission entry;
  EXPECT_EQ(end_.Peek(&entry), Next::kEntry);
  for (const uint32_t ahead : {kEntries + 1, 2 * kEntries, 1U << 31, UINT32_MAX}) {
    Submitted(ahead);
    EXPECT_EQ(end_.Peek(&entry), Next::kBroken) << ahead;
  }
}

TEST_P(DaemonEndTest, ATailThatGoesBackBreaksTheRing) {
  Serve(0, 3);
  for (const uint32_t tail : {2U, 0U}) {
    Submitted(tail);
    EXPECT_EQ(TakeOne(), Next::kBroken) << tail;
  }
}

TEST_P(DaemonEndTest, ReadingWhatWasNotTakenBreaksTheRing) {
  Serve(0, 3);
  Submit(3);
  for (const uint32_t read : {4U, 5U, 1U << 31}) {
    HaveRead(read);
    EXPECT_EQ(TakeOne(), Next::kBroken) << read;
  }
}

TEST_P(DaemonEndTest, ReadingWhatWasNotCompletedBreaksTheRing) {
  Submit(0);
  ASSERT_EQ(TakeOne(), Next::kEntry);
  Submit(1);
  HaveRead(1);
  EXPECT_EQ(TakeOne(), Next::kBroken);
  end_.Complete({});
  EXPECT_EQ(TakeOne(), Next::kEntry);
}

TEST_P(DaemonEndTest, AHeadThatFallsFarBehindBreaksTheRing) {
  Serve(0, kEntries + 1);
  Submit(kEntries + 1);
  HaveRead(0);
  EXPECT_EQ(TakeOne(), Next::kBroken);
  StoreRelease(client().completion_head, first_ - 1);
  EXPECT_EQ(TakeOne(), Next::kBroken);
}

TEST_P(DaemonEndTest, ABrokenRingIsNotWaitedFor) {
  Submitted(kEntries + 1);
  EXPECT_TRUE(end_.PrepareToSleep());
  Submitted(1);
  HaveRead(77);
  EXPECT_TRUE(end_.PrepareToSleep());
}

TEST_P(DaemonEndTest, NoClientHasMoreRequestsInProgressThanEntries) {
  // At every step it claims the maximum that it could have read.
  uint32_t taken = 0;
  for (uint32_t step = 0; step < 100; ++step) {
    Submitted(taken + kEntries);
    for (uint32_t claim = 0; claim <= kEntries; ++claim) {
      HaveRead(taken - claim);
      if (TakeOne() == Next::kEntry) {
        ++taken;
        break;
      }
    }
    ASSERT_LE(end_.unfinished(), kEntries);
    if (step % 3 == 0 && end_.unfinished() != 0) {
      end_.Complete({});
    }
  }
  EXPECT_GT(taken, kEntries);
}

// --- Completions that are not read ---

TEST_P(DaemonEndTest, NothingIsTakenWithoutRoomForItsCompletion) {
  for (uint32_t number = 0; number < kEntries; ++number) {
    Submit(number);
    ASSERT_EQ(TakeOne(), Next::kEntry);
    end_.Complete({});
  }
  Submit(kEntries);
  EXPECT_EQ(TakeOne(), Next::kNothing);
  EXPECT_FALSE(end_.PrepareToSleep());
  EXPECT_EQ(client().submission_wakeup, 1u);
  HaveRead(1);
  EXPECT_TRUE(end_.PrepareToSleep());
  EXPECT_EQ(TakeOne(), Next::kEntry);
}

TEST_P(DaemonEndTest, RequestsInProgressKeepTheirRoom) {
  for (uint32_t number = 0; number < kEntries; ++number) {
    Submit(number);
    ASSERT_EQ(TakeOne(), Next::kEntry);
  }
  Submit(kEntries);
  EXPECT_EQ(TakeOne(), Next::kNothing);
  end_.Complete({});
  EXPECT_EQ(TakeOne(), Next::kNothing);
  HaveRead(1);
  EXPECT_EQ(TakeOne(), Next::kEntry);
}

// --- Payload ---

TEST_P(DaemonEndTest, PayloadExistsUpToItsLastByte) {
  const uint32_t bytes = geometry_.payload_bytes;
  EXPECT_TRUE(end_.PayloadExists(0, 0));
  EXPECT_TRUE(end_.PayloadExists(0, bytes));
  EXPECT_TRUE(end_.PayloadExists(bytes - 8, 8));
  EXPECT_TRUE(end_.PayloadExists(bytes, 0));
  EXPECT_FALSE(end_.PayloadExists(0, bytes + 1));
  EXPECT_FALSE(end_.PayloadExists(bytes - 8, 9));
  EXPECT_FALSE(end_.PayloadExists(bytes, 1));
  EXPECT_FALSE(end_.PayloadExists(bytes + 8, 0));
  EXPECT_FALSE(end_.PayloadExists(8, UINT32_MAX));
  EXPECT_FALSE(end_.PayloadExists(UINT32_MAX - 7, 8));
  EXPECT_FALSE(end_.PayloadExists(UINT32_MAX - 7, UINT32_MAX));
  EXPECT_FALSE(end_.PayloadExists(4, 8));
  EXPECT_FALSE(end_.PayloadExists(1, 0));
}

TEST_P(DaemonEndTest, PayloadIsCopiedFromItsPlace) {
  const uint32_t last = geometry_.payload_bytes - 8;
  const uint64_t word = 0x0123456789abcdef;
  std::memcpy(memory_.at(geometry_.payload_offset + last), &word, sizeof(word));
  std::vector<uint64_t> copy(2);
  end_.CopyPayload(last, 8, copy);
  EXPECT_EQ(copy[0], word);
  EXPECT_EQ(copy[1], 0u);
}

TEST_P(DaemonEndTest, ResultsAreWrittenToTheirPlace) {
  const uint32_t tokens[] = {1, 2, 3};
  end_.WriteResult(geometry_.payload_bytes - 16, std::as_bytes(std::span(tokens)));
  uint32_t written[4];
  std::memcpy(written, memory_.at(geometry_.payload_offset + geometry_.payload_bytes - 16), sizeof(written));
  EXPECT_EQ(written[0], 1u);
  EXPECT_EQ(written[2], 3u);
  EXPECT_EQ(written[3], 0u);
}

TEST_P(DaemonEndTest, NoResultIsWrittenAnywhere) {
  end_.WriteResult(UINT32_MAX, {});
  EXPECT_EQ(TakeOne(), Next::kNothing);
}

TEST_P(DaemonEndTest, EachWordOfACopyWasThereWhileAnotherThreadRewrote) {
  constexpr uint32_t kWords = 512;
  constexpr uint32_t kRounds = 2000;
  // Both halves of a word carry the round: half a word from one round and half from another would show.
  const auto word_of = [](uint64_t round) { return round << 32 | round; };
  auto* const words = reinterpret_cast<uint64_t*>(memory_.at(geometry_.payload_offset));
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> rounds = 0;
  std::thread client([&] {
    for (uint64_t round = 1; !stop.load(std::memory_order_relaxed); ++round) {
      for (uint32_t index = 0; index < kWords; ++index) {
        std::atomic_ref(words[index]).store(word_of(round & UINT32_MAX), std::memory_order_relaxed);
      }
      rounds.store(round, std::memory_order_relaxed);
    }
  });
  std::vector<uint64_t> copy(kWords);
  // Until the client has rewritten everything while copies were made.
  for (uint32_t round = 0; round < kRounds || rounds.load(std::memory_order_relaxed) < 2; ++round) {
    end_.CopyPayload(0, kWords * sizeof(uint64_t), copy);
    for (const uint64_t word : copy) {
      ASSERT_EQ(word >> 32, word & UINT32_MAX);
    }
  }
  stop = true;
  client.join();
}

TEST_P(DaemonEndTest, EachWordOfAnEntryWasThereWhileAnotherThreadRewrote) {
  Submitted(1);
  auto* const words =
      reinterpret_cast<uint64_t*>(memory_.at(geometry_.submission_offset + first_ % kEntries * kEntryBytes));
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> rounds = 0;
  std::thread client([&] {
    for (uint64_t round = 1; !stop.load(std::memory_order_relaxed); ++round) {
      for (size_t index = 0; index < kEntryBytes / sizeof(uint64_t); ++index) {
        std::atomic_ref(words[index])
            .store((round & UINT32_MAX) << 32 | (round & UINT32_MAX), std::memory_order_relaxed);
      }
      rounds.store(round, std::memory_order_relaxed);
    }
  });
  for (uint32_t round = 0; round < 20'000 || rounds.load(std::memory_order_relaxed) < 2; ++round) {
    Submission entry;
    ASSERT_EQ(end_.Peek(&entry), Next::kEntry);
    for (const uint64_t word : std::bit_cast<std::array<uint64_t, kEntryBytes / sizeof(uint64_t)>>(entry)) {
      ASSERT_EQ(word >> 32, word & UINT32_MAX);
    }
  }
  stop = true;
  client.join();
}

// --- Wake-ups ---

TEST_P(DaemonEndTest, AsksForADoorbellOnlyWhileItSleeps) {
  end_.StayAwake();
  EXPECT_EQ(client().submission_wakeup, 0u);
  EXPECT_FALSE(end_.PrepareToSleep());
  EXPECT_EQ(client().submission_wakeup, 1u);
  Submit(0);
  EXPECT_TRUE(end_.PrepareToSleep());
}

TEST_P(DaemonEndTest, AClientGetsAByteOnlyWhenItWantsOne) {
  for (const uint32_t wakeup : {0U, 1U, 3U, UINT32_MAX}) {
    StoreRelease(client().completion_wakeup, wakeup);
    EXPECT_FALSE(end_.Complete({})) << wakeup;
  }
  StoreRelease(client().completion_wakeup, static_cast<uint32_t>(Wakeup::kPipe));
  EXPECT_TRUE(end_.Complete({}));
  EXPECT_EQ(client().completion_wakes, 1u);
}

TEST_P(DaemonEndTest, TheFirstReasonForTheEndCounts) {
  StoreRelease(client().completion_wakeup, static_cast<uint32_t>(Wakeup::kPipe));
  EXPECT_TRUE(end_.End(191));
  EXPECT_FALSE(end_.End(192));
  EXPECT_EQ(client().end_reason, 191u);
}

TEST_P(DaemonEndTest, WhatTheClientWritesIntoTheDaemonsWordsIsNotBelieved) {
  Serve(0, 2);
  for (uint32_t* const word : {&client().submission_head, &client().completion_tail, &client().completion_wakes,
                               &client().description.entries, &client().description.payload_bytes}) {
    StoreRelease(*word, 0x55555555);
  }
  Serve(2, 2 * kEntries);
  EXPECT_EQ(client().submission_head, first_ + 2 + 2 * kEntries);
  EXPECT_EQ(client().completion_tail, first_ + 2 + 2 * kEntries);
}

TEST_P(DaemonEndTest, EachSideSeesTheOthersProcessor) {
  StoreRelaxed(client().client_cpu, 7);
  EXPECT_EQ(end_.client_cpu(), 7u);
  end_.SetCpu(8);
  EXPECT_EQ(client().daemon_cpu, 8u);
}

}  // namespace
}  // namespace rnicd::ring
