#include "ring/queue_end.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "ring/ring_fixture_test.h"
#include "ring/shared_word.h"

namespace rnicd::ring {
namespace {

class QueueEndTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint32_t kDepth = 4;

  QueueHeader& client() { return memory_.header<QueueHeader>(); }
  void HaveRead(uint32_t count) { StoreRelease(client().head, first_ + count); }
  static QueueReader MustOpen(std::span<std::byte> file) {
    absl::StatusOr<QueueReader> reader = QueueReader::Open(file);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }

  const uint32_t first_ = GetParam();
  const QueueGeometry geometry_ = MakeQueueGeometry(kDepth);
  const SharedBytes memory_ = QueueMemory(geometry_, first_);
  QueueWriter writer_{memory_.all(), geometry_};
  QueueReader reader_ = MustOpen(memory_.all());
};

INSTANTIATE_TEST_SUITE_P(From, QueueEndTest, testing::Values(0U, kBeforeTheWrap, UINT32_MAX));

TEST_P(QueueEndTest, ACompletionArrivesWithEveryField) {
  EXPECT_FALSE(writer_.Push({.status = NtStatus::kCancelled,
                             .reason = ErrorReason::RING_BROKEN,
                             .type = OperationType::kReceiveAndInvalidate,
                             .bytes = 0xfedcba98,
                             .qp_context = 0xfedcba9876543210,
                             .request_context = 0x123456789abcdef0,
                             .invalidated_token = RemoteToken{0xabcdef01}}));
  Completion completion;
  ASSERT_TRUE(reader_.Poll(&completion));
  EXPECT_EQ(completion.status, NtStatus::kCancelled);
  EXPECT_EQ(completion.reason, ErrorReason::RING_BROKEN);
  EXPECT_EQ(completion.type, OperationType::kReceiveAndInvalidate);
  EXPECT_EQ(completion.bytes, 0xfedcba98u);
  EXPECT_EQ(completion.qp_context, 0xfedcba9876543210u);
  EXPECT_EQ(completion.request_context, 0x123456789abcdef0u);
  EXPECT_EQ(completion.invalidated_token, RemoteToken{0xabcdef01});
  EXPECT_FALSE(reader_.Poll(&completion));
}

TEST_P(QueueEndTest, CompletionsArriveInOrderInSlotsThatAreUsedAgain) {
  uint64_t written = 0;
  uint64_t read = 0;
  for (uint32_t round = 0; round < 100; ++round) {
    for (uint32_t index = 0; index <= round % kDepth; ++index) {
      ASSERT_LT(writer_.unread(), writer_.capacity());
      writer_.Push({.request_context = written++});
    }
    EXPECT_EQ(writer_.unread(), round % kDepth + 1);
    Completion completion;
    while (reader_.Poll(&completion)) {
      EXPECT_EQ(completion.request_context, read++);
    }
    EXPECT_EQ(read, written);
    EXPECT_EQ(writer_.unread(), 0u);
  }
}

TEST_P(QueueEndTest, AnImpossibleHeadIsNotBelieved) {
  for (uint32_t count = 0; count < 3; ++count) {
    writer_.Push({});
  }
  HaveRead(1);
  EXPECT_EQ(writer_.unread(), 2u);
  for (const uint32_t read : {4U, 5U, 1000U, 1U << 31, 0U, UINT32_MAX}) {
    HaveRead(read);
    EXPECT_EQ(writer_.unread(), 2u) << read;
  }
  HaveRead(3);
  EXPECT_EQ(writer_.unread(), 0u);
  // What was read stays read.
  HaveRead(1);
  EXPECT_EQ(writer_.unread(), 0u);
}

TEST_P(QueueEndTest, WhatTheClientWritesIntoTheDaemonsWordsIsNotBelieved) {
  writer_.Push({});
  for (uint32_t* const word : {&client().tail, &client().notifications, &client().wakes, &client().description.entries,
                               &client().description.completion_offset}) {
    StoreRelease(*word, 0x55555555);
  }
  EXPECT_EQ(writer_.unread(), 1u);
  writer_.Push({});
  writer_.Notify();
  EXPECT_EQ(client().tail, first_ + 2);
  EXPECT_EQ(client().notifications, 1u);
}

TEST_P(QueueEndTest, NotificationsAreCounted) {
  EXPECT_EQ(reader_.notifications(), 0u);
  EXPECT_FALSE(writer_.Notify());
  EXPECT_FALSE(writer_.Notify());
  EXPECT_EQ(reader_.notifications(), 2u);
  reader_.WaitForNotification(1, kForever);
  reader_.WaitForNotification(2, std::chrono::milliseconds(1));
}

TEST_P(QueueEndTest, AFailureEndsEveryWait) {
  EXPECT_EQ(reader_.status(), 0u);
  EXPECT_FALSE(reader_.PrepareToWait());
  EXPECT_TRUE(writer_.Fail(0xC000009A));
  EXPECT_EQ(reader_.status(), 0xC000009Au);
  EXPECT_TRUE(reader_.PrepareToWait());
  reader_.Wait(kForever);
  reader_.WaitForNotification(0, kForever);
}

TEST_P(QueueEndTest, OnlyAClientThatWaitsGetsAByte) {
  EXPECT_FALSE(writer_.Push({}));
  EXPECT_TRUE(reader_.PrepareToWait());
  Completion completion;
  ASSERT_TRUE(reader_.Poll(&completion));
  EXPECT_FALSE(reader_.PrepareToWait());
  EXPECT_TRUE(writer_.Push({}));
  EXPECT_FALSE(writer_.Notify());
  reader_.StopWaiting();
  EXPECT_FALSE(writer_.Push({}));
  StoreRelease(client().notification_wakeup, static_cast<uint32_t>(Wakeup::kPipe));
  EXPECT_FALSE(writer_.Push({}));
  EXPECT_TRUE(writer_.Notify());
  EXPECT_TRUE(writer_.Fail(1));
}

TEST_P(QueueEndTest, AFileOfAnotherKindOrVersionIsRefused) {
  const auto refused_with = [&](auto change) {
    const Description before = client().description;
    change(client().description);
    const bool refused = FailedWith(QueueReader::Open(memory_.all()).status(), ErrorReason::FIELD_OUT_OF_RANGE);
    client().description = before;
    return refused;
  };
  EXPECT_FALSE(refused_with([](Description&) {}));
  EXPECT_TRUE(refused_with([](Description& it) { it.magic = kRingMagic; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.version = kVersion + 1; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.entries = 0; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.entries = 3; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.entries = 1U << 31; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.completion_offset = 128; }));
  EXPECT_TRUE(refused_with([](Description& it) { it.completion_offset = UINT32_MAX; }));
  EXPECT_TRUE(FailedWith(QueueReader::Open(memory_.all().first(100)).status(), ErrorReason::FIELD_OUT_OF_RANGE));
}

}  // namespace
}  // namespace rnicd::ring
