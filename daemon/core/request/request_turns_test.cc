// Requests of many items, done in pieces.
#include "daemon/core/request/request_turns.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

class RequestTurnsTest : public ::testing::Test {
 protected:
  struct Piece {
    uint32_t first = 0;
    uint32_t end = 0;
    std::thread::id thread;
    absl::Status start;
  };

  explicit RequestTurnsTest(uint32_t workers = 3) : world_(Options(workers)) {}

  static WorldOptions Options(uint32_t workers) {
    WorldOptions options = SlowFromTwoPages();
    options.workers = workers;
    return options;
  }
  // Records the pieces, and that the last one was followed by `done`.
  ItemPlan Plan(uint32_t items, uint32_t threads = 1) {
    return {.items = items,
            .threads = threads,
            .bytes_of = nullptr,
            .run =
                [this](const SessionGuard& /*session*/, uint32_t first, uint32_t end, const absl::Status& start,
                       const std::function<void()>& then) {
                  Record({.first = first, .end = end, .thread = std::this_thread::get_id(), .start = start});
                  then();
                },
            .done = [this] { done_.Set(Items()); }};
  }
  void Run(ItemPlan plan) { RequestTurns::Run(owner_.session->Begin()->requests(), std::move(plan)); }
  void Record(const Piece& piece) {
    MutexLock lock(mutex_);
    pieces_.push_back(piece);
  }
  std::vector<Piece> Pieces() const {
    MutexLock lock(mutex_);
    return pieces_;
  }
  // All items in ascending order.
  std::vector<uint32_t> Items() const {
    std::vector<uint32_t> items;
    for (const Piece& piece : Pieces()) {
      for (uint32_t item = piece.first; item < piece.end; ++item) {
        items.push_back(item);
      }
    }
    std::ranges::sort(items);
    return items;
  }
  static std::vector<uint32_t> AllOf(uint32_t count) {
    std::vector<uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }

  World world_;
  Owner owner_{world_};
  mutable Mutex mutex_;
  std::vector<Piece> pieces_ RNICD_GUARDED_BY(mutex_);
  Awaited<std::vector<uint32_t>> done_;
};

TEST_F(RequestTurnsTest, AShortRequestIsDoneAtOnceByItsThread) {
  Run(Plan(256));
  ASSERT_EQ(Pieces().size(), 1u);
  EXPECT_EQ(Pieces()[0].thread, std::this_thread::get_id());
  EXPECT_EQ(Items(), AllOf(256));
  EXPECT_EQ(done_.times(), 1);
}

TEST_F(RequestTurnsTest, ALongOneIsDoneOnWorkersInOrderAndEachItemOnce) {
  Run(Plan(1000));
  EXPECT_EQ(done_.Get(), AllOf(1000));
  const std::vector<Piece> pieces = Pieces();
  ASSERT_EQ(pieces.size(), 4u);
  for (size_t index = 1; index < pieces.size(); ++index) {
    EXPECT_EQ(pieces[index].first, pieces[index - 1].end);
  }
  EXPECT_NE(pieces[0].thread, std::this_thread::get_id());
}

TEST_F(RequestTurnsTest, BytesEndAPieceAndMakeARequestLong) {
  ItemPlan plan = Plan(4);
  // The first item has an impossible length and will be refused later.
  plan.bytes_of = [](uint32_t index) { return index == 0 ? UINT64_MAX : kPage; };
  Run(std::move(plan));
  EXPECT_EQ(done_.Get(), AllOf(4));
  const std::vector<Piece> pieces = Pieces();
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].end, 1u);
  EXPECT_EQ(pieces[1].end, 3u);
  EXPECT_NE(pieces[0].thread, std::this_thread::get_id());
}

TEST_F(RequestTurnsTest, OneItemThatIsSlowIsNotDoneByItsThread) {
  ItemPlan plan = Plan(1);
  plan.bytes_of = [](uint32_t /*index*/) { return 2 * kPage; };
  Run(std::move(plan));
  EXPECT_EQ(done_.Get(), AllOf(1));
  EXPECT_NE(Pieces()[0].thread, std::this_thread::get_id());
}

// The first piece waits until another thread has done all others.
TEST_F(RequestTurnsTest, SeveralThreadsDoPiecesAtTheSameTime) {
  ItemPlan plan = Plan(2560, 2);
  plan.run = [this, record = plan.run](const SessionGuard& session, uint32_t first, uint32_t end,
                                       const absl::Status& start, const std::function<void()>& then) {
    if (first == 0) {
      EXPECT_TRUE(Eventually([this] { return Items().size() == 2560 - 256; }));
    }
    record(session, first, end, start, then);
  };
  Run(std::move(plan));
  EXPECT_EQ(done_.Get(), AllOf(2560));
  EXPECT_EQ(done_.times(), 1);
}

TEST_F(RequestTurnsTest, APieceThatIsNotOverKeepsTheNextOneWaiting) {
  Awaited<std::function<void()>> ending;
  ItemPlan plan = Plan(512);
  plan.run = [&ending, record = plan.run](const SessionGuard& session, uint32_t first, uint32_t end,
                                          const absl::Status& start, const std::function<void()>& then) {
    if (first != 0) {
      record(session, first, end, start, then);
      return;
    }
    record(session, first, end, start, [] {});
    ending.Set(then);
  };
  Run(std::move(plan));
  const std::optional<std::function<void()>> then = ending.Get();
  ASSERT_TRUE(then.has_value());
  EXPECT_EQ(Items(), AllOf(256));
  EXPECT_EQ(done_.times(), 0);
  (*then)();
  EXPECT_EQ(done_.Get(), AllOf(512));
}

class OneWorker : public RequestTurnsTest {
 protected:
  OneWorker() : RequestTurnsTest(1) {}
};

TEST_F(OneWorker, DoesOthersWorkBetweenThePieces) {
  {
    const BusyWorkers busy(*world_.workers, 1);
    Run(Plan(1000));
    world_.workers->PostFor(12345, [this] { Record({.first = 5000, .end = 5001}); });
  }
  ASSERT_TRUE(done_.Get().has_value());
  const std::vector<Piece> pieces = Pieces();
  ASSERT_EQ(pieces.size(), 5u);
  EXPECT_EQ(pieces[1].first, 5000u);
}

TEST_F(OneWorker, WhatIsLeftWhenTheSessionEndsIsReportedAndNotDone) {
  const BusyWorkers busy(*world_.workers, 1);
  Run(Plan(1000));
  world_.End(owner_.session);
  EXPECT_EQ(done_.Get(), AllOf(1000));
  for (const Piece& piece : Pieces()) {
    EXPECT_THAT(piece.start, FailsWith(ErrorReason::SESSION_ENDING));
  }
  EXPECT_EQ(world_.Held(), "");
}

}  // namespace
}  // namespace rnicd::core
