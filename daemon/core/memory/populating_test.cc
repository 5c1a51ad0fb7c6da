#include "daemon/core/memory/populating.h"

#include <atomic>
#include <thread>
#include <vector>

#include "base/system/faulty_os.h"
#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr uint64_t kPiece = uint64_t{1} << 20;
constexpr uint64_t kPopulatedBytes = 8 * kPiece;
using Next = Populating::Next;

class PopulatingTest : public ::testing::Test {
 protected:
  PopulatingTest()
      : file_(*os_.CreateMemoryFile(kPopulatedBytes, kPage)), mapping_(*os_.Map(file_.get(), kPopulatedBytes)) {}
  ~PopulatingTest() override { (void)os_.Unmap(mapping_); }

  Populating Work(uint64_t populated = 0) {
    return Populating(os_,
                      {.mapping = mapping_, .page_bytes = kPage, .populated = populated, .fresh_file = file_.get()});
  }
  uint64_t PopulatedBytes() { return os_.Inspect(file_.get())->populated_bytes; }

  FaultyOs os_{SystemOs()};
  UniqueFd file_;
  const std::span<std::byte> mapping_;
};

TEST_F(PopulatingTest, ManyThreadsPopulateEachPieceOnceAndOneLearnsOfTheEnd) {
  Populating work = Work();
  std::atomic<int> ends = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      Next next = Next::kGoOn;
      while (next == Next::kGoOn) {
        next = work.RunPiece();
      }
      ends += next == Next::kEnd ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(ends, 1);
  EXPECT_TRUE(work.status().ok());
  EXPECT_EQ(work.done(), kPopulatedBytes);
  EXPECT_EQ(PopulatedBytes(), kPopulatedBytes);
}

TEST_F(PopulatingTest, WhatIsPopulatedAlreadyIsLeftAlone) {
  Populating work = Work(6 * kPiece);
  EXPECT_EQ(work.RunPiece(), Next::kGoOn);
  EXPECT_EQ(work.RunPiece(), Next::kEnd);
  EXPECT_EQ(PopulatedBytes(), 2 * kPiece);
  EXPECT_EQ(Work(kPopulatedBytes).RunPiece(), Next::kEnd);
}

TEST_F(PopulatingTest, AFailureEndsIt) {
  for (const char* const method : {"Reserve", "Populate"}) {
    os_.FailNext(method, MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), 1);
    Populating work = Work();
    EXPECT_EQ(work.RunPiece(), Next::kEnd) << method;
    EXPECT_THAT(work.status(), FailsWith(ErrorReason::MEMORY_PAGES_UNAVAILABLE)) << method;
    EXPECT_EQ(work.RunPiece(), Next::kLeave) << method;
  }
}

TEST_F(PopulatingTest, CancelledBetweenTwoPiecesItHasEnded) {
  Populating work = Work();
  EXPECT_EQ(work.RunPiece(), Next::kGoOn);
  EXPECT_EQ(work.Cancel(MakeError(ErrorReason::SESSION_ENDING)), Next::kEnd);
  EXPECT_EQ(work.Cancel(MakeError(ErrorReason::SESSION_ENDING)), Next::kLeave) << "told once";
  EXPECT_EQ(work.RunPiece(), Next::kLeave);
  EXPECT_THAT(work.status(), FailsWith(ErrorReason::SESSION_ENDING));
  EXPECT_EQ(work.done(), kPiece);
}

}  // namespace
}  // namespace rnicd::core
