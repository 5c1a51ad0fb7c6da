// Sessions whose memory comes from the node's pool, or is populated by several threads.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "daemon/core/memory/memory_pool.h"
#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

WorldOptions LimitedTo(uint64_t node_bytes, uint64_t session_bytes = 0) {
  WorldOptions options;
  options.limits.node[Resource::kMemoryBytes] = node_bytes;
  options.limits.session[Resource::kMemoryBytes] = session_bytes;
  return options;
}

// A node with a pool that is full.
class PoolWorld {
 public:
  PoolWorld(const WorldOptions& options, const std::vector<PoolClass>& classes)
      : world(options), pool(std::make_unique<MemoryPool>(world.os, world.ledger, classes)) {
    world.node.pool = pool.get();
    Refill();
  }
  void Refill() const {
    while (pool->RefillPiece().bytes != 0) {
    }
  }

  World world;
  const std::unique_ptr<MemoryPool> pool;
};

TEST(SessionPool, AFileOfJustThatSizeIsThereAtOnceAndIsTheSessions) {
  PoolWorld node({}, {Files(kMiB, 1)});
  Owner owner(node.world);
  const auto begun = owner.BeginAllocate({.size = kMiB, .page_bytes = std::nullopt}, [](const auto&) {});
  ASSERT_TRUE(begun.succeeded());
  EXPECT_TRUE(begun.outcome()->from_pool);
  EXPECT_EQ(begun.outcome()->page_bytes, kPage);
  EXPECT_EQ(owner.session->ledger().used(Resource::kMemoryBytes), kMiB);
  EXPECT_EQ(node.world.ledger->used(Resource::kMemoryBytes), kMiB) << "no longer the pool's";
  const auto memory = *owner.session->Begin()->memory().Find(begun.outcome()->memory);
  ASSERT_TRUE(FetchAndSeal(*memory).ok());
  EXPECT_TRUE(
      std::ranges::all_of(memory->BeginUse()->object().mapping(), [](auto byte) { return byte == std::byte{}; }));
}

TEST(SessionPool, AnotherFileIsCutOrMadeLonger) {
  for (const uint64_t size : {kMiB, 3 * kMiB}) {
    PoolWorld node({}, {Files(2 * kMiB, 1)});
    Owner owner(node.world);
    const auto allocated = owner.TryAllocate({.size = size});
    ASSERT_TRUE(allocated.ok()) << allocated.status();
    EXPECT_TRUE(allocated->from_pool);
    const auto memory = *owner.session->Begin()->memory().Find(allocated->memory);
    const absl::StatusOr<UniqueFd> file = memory->DuplicateFile();
    EXPECT_EQ(node.world.os.Inspect(file->get())->size, size);
    EXPECT_EQ(node.world.os.Inspect(file->get())->populated_bytes, size);
    EXPECT_EQ(node.world.os.Inspect(file->get())->seals, (Seals{.shrink = true, .grow = true}));
  }
}

TEST(SessionPool, AFileThatCannotBeFittedIsReplacedByANewOne) {
  PoolWorld node({}, {Files(2 * kMiB, 1)});
  Owner owner(node.world);
  node.world.os.FailNext("Remap", MakeError(ErrorReason::INTERNAL_FAULT), 1);
  const auto allocated = owner.TryAllocate({.size = kMiB});
  ASSERT_TRUE(allocated.ok()) << allocated.status();
  EXPECT_FALSE(allocated->from_pool);
}

TEST(SessionPool, ARefusedSessionLeavesTheFileInThePool) {
  PoolWorld node(LimitedTo(0, kMiB), {Files(2 * kMiB, 1)});
  Owner owner(node.world);
  EXPECT_THAT(owner.TryAllocate({.size = 2 * kMiB}).status(), FailsWith(ErrorReason::QUOTA_MEMORY_BYTES));
  EXPECT_EQ(node.pool->state().classes[0].ready, 1u);
  EXPECT_EQ(node.world.ledger->used(Resource::kMemoryBytes), 2 * kMiB);
}

TEST(SessionPool, WhatItHoldsOfTheNodesLimitIsTheSessionsToTake) {
  PoolWorld node(LimitedTo(4 * kMiB), {Files(kMiB, 4)});
  Owner owner(node.world);
  EXPECT_TRUE(owner.TryAllocate({.size = kMiB}).ok()) << "served by a file, at the limit";
  EXPECT_TRUE(owner.TryAllocate({.size = 3 * kMiB}).ok()) << "not served, and the files give way";
  EXPECT_EQ(node.world.ledger->used(Resource::kMemoryBytes), 4 * kMiB);
  EXPECT_THAT(owner.TryAllocate({.size = kPage}).status(), FailsWith(ErrorReason::QUOTA_MEMORY_BYTES));
}

TEST(SessionPool, AnEndedSessionsMemoryIsNotReadyAgain) {
  PoolWorld node({}, {Files(kMiB, 1)});
  Owner owner(node.world);
  ASSERT_TRUE(owner.TryAllocate({.size = kMiB}).ok());
  node.world.End(owner.session);
  EXPECT_EQ(node.pool->state().classes[0].ready, 0u);
  EXPECT_EQ(node.world.os.live_mappings(), 0u);
  EXPECT_EQ(node.world.Held(), "");
}

// --- several threads ---

TEST(SessionPopulating, SeveralThreadsPopulateOneObjectAndOneAnswerComes) {
  World world;
  world.node.populating_threads = 4;
  Owner owner(world);
  for (int turn = 0; turn < 8; ++turn) {
    const auto allocated = owner.TryAllocate({.size = 80 * kMiB});
    ASSERT_TRUE(allocated.ok()) << allocated.status();
    const auto memory = *owner.session->Begin()->memory().Find(allocated->memory);
    EXPECT_EQ(world.os.Inspect(memory->DuplicateFile()->get())->populated_bytes, 80 * kMiB);
    ASSERT_TRUE(memory->Release().ok());
  }
}

TEST(SessionPopulating, AFailureOfOneThreadIsTheAnswerAndNothingIsLeft) {
  World world;
  world.node.populating_threads = 4;
  Owner owner(world);
  world.os.FailNext("Reserve", MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), 1);
  EXPECT_THAT(owner.TryAllocate({.size = 80 * kMiB}).status(), FailsWith(ErrorReason::MEMORY_PAGES_UNAVAILABLE));
  EXPECT_EQ(world.os.live_mappings(), 0u);
  EXPECT_EQ(owner.session->ledger().used(Resource::kMemoryBytes), 0u) << "refunded before the answer";
}

TEST(SessionPopulating, TheEndOfTheSessionEndsAllThreads) {
  World world;
  world.node.populating_threads = 4;
  Owner owner(world);
  Awaited<absl::Status> allocated;
  ASSERT_TRUE(
      owner.BeginAllocate({.size = 512 * kMiB}, [&](const auto& got) { allocated.Set(got.status()); }).pending());
  world.End(owner.session);
  EXPECT_TRUE(allocated.Get().has_value());
  EXPECT_EQ(world.os.live_mappings(), 0u);
  EXPECT_EQ(world.Held(), "");
}

// --- progress ---

TEST(SessionPopulating, ALongAllocationSaysHowFarItIsIfItIsAsked) {
  World world;
  Owner owner(world);
  std::vector<MemoryProgress> seen;
  Awaited<absl::Status> allocated;
  // An event is fetched when it is there, as a stream does.
  ASSERT_TRUE(owner.session->events().Attach([&] {
    for (auto event = owner.session->events().Pop(); event.has_value(); event = owner.session->events().Pop()) {
      seen.push_back(std::get<MemoryProgress>(event->body));
    }
  }));
  ASSERT_TRUE(owner
                  .BeginAllocate({.size = 256 * kMiB, .progress_context = 9},
                                 [&](const auto& got) { allocated.Set(got.status()); })
                  .pending());
  EXPECT_TRUE(allocated.Get()->ok());
  owner.session->events().Detach();
  ASSERT_EQ(seen.size(), 3u) << "one for each 64 MiB but the last";
  EXPECT_EQ(seen[1].context, 9u);
  EXPECT_EQ(seen[1].size, 256 * kMiB);
  EXPECT_EQ(seen[1].populated_bytes, 128 * kMiB);
}

TEST(SessionPopulating, ProgressThatNobodyFetchedIsGoneWithTheAnswer) {
  World world;
  Owner owner(world);
  ASSERT_TRUE(owner.TryAllocate({.size = 256 * kMiB, .progress_context = 9}).ok());
  EXPECT_FALSE(owner.session->events().Pop().has_value());
}

}  // namespace
}  // namespace rnicd::core
