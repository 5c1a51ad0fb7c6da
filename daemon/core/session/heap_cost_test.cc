// Each figure of heap_cost.h is held against the memory that objects of that kind take, with the soft provider.
#include "daemon/core/tenant/heap_cost.h"

#include <malloc.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/core/queue/queue_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr uint64_t kObjects = 512;

// Bytes that the program has allocated; does not change under a sanitizer, which has its own allocator.
uint64_t HeapNow() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

class HeapCostTest : public ::testing::Test {
 protected:
  explicit HeapCostTest(const WorldOptions& options = {}) : world_(options) {}

  // `make` creates that many objects. They must take no more than they are charged, and the charge must not be a
  // multiple of what they take.
  void ExpectCovered(const std::string& what, const std::function<void()>& make) {
    const uint64_t charged_before = world_.ledger->used(Resource::kHeapBytes);
    const uint64_t heap_before = HeapNow();
    make();
    const uint64_t taken = HeapNow() - heap_before;
    const uint64_t charged = world_.ledger->used(Resource::kHeapBytes) - charged_before;
    RecordProperty(what, std::to_string(taken / kObjects) + " of " + std::to_string(charged / kObjects));
    EXPECT_LE(taken, charged) << what;
    if (taken != 0) {
      EXPECT_GE(4 * taken, charged) << what << " is charged too much";
    }
  }
  void EachOf(const std::string& what, const std::function<void()>& make) {
    ExpectCovered(what, [&] {
      for (uint64_t index = 0; index < kObjects; ++index) {
        make();
      }
    });
  }

  World world_;
  QueueOwner owner_{world_};
};

TEST_F(HeapCostTest, CoversSessions) {
  std::vector<Owner> owners;
  owners.reserve(kObjects);
  uint64_t number = 1000;
  EachOf("session", [&] { owners.emplace_back(world_, ++number); });
}

TEST_F(HeapCostTest, CoversAdaptersAndDomains) {
  EachOf("adapter", [&] { owner_.Adapter(); });
  EachOf("domain", [&] { owner_.Domain(owner_.adapter); });
}

TEST_F(HeapCostTest, CoversAMemoryObjectWithItsRegistration) {
  EachOf("memory object with a region", [&] { owner_.RegisteredRegion(); });
}

TEST_F(HeapCostTest, CoversTheCountsOfPagesThatAreFarApart) {
  const uint64_t far = 512;
  const MemoryObjectId memory = owner_.Memory(16 * far);
  ExpectCovered("region of many pieces", [&] {
    std::vector<MdlEntry> chain;
    for (uint64_t index = 0; index < 16 * far; index += 2) {
      chain.push_back({.memory_id = memory,
                       .byte_offset = index * kPage,
                       .byte_count = kPage,
                       .virtual_address = {kRegionBase + chain.size() * kPage}});
    }
    const auto registered = owner_.session->Begin()->regions().Register(
        {.region = owner_.Region(owner_.domain), .chain = chain, .length = chain.size() * kPage, .flags = 0}, {},
        [](const auto&) {});
    ASSERT_TRUE(registered.ok()) << registered.status();
    chain = {};
  });
}

TEST_F(HeapCostTest, CoversRegionsAndTheirPieces) {
  const MemoryObjectId memory = owner_.Memory(2);
  EachOf("region of one piece",
         [&] { ASSERT_TRUE(owner_.Register(owner_.Region(owner_.domain), memory, kPage).ok()); });
}

TEST_F(HeapCostTest, CoversMappings) {
  const MemoryObjectId memory = owner_.Memory(1024);
  EachOf("mapping of a page", [&] { owner_.Lam(memory, 1); });
  EachOf("mapping of 1,024 pages", [&] { owner_.Lam(memory, 1024); });
}

TEST_F(HeapCostTest, CoversQueuesAndWindows) {
  EachOf("completion queue", [&] { owner_.Queue(1); });
  EachOf("window", [&] { owner_.Window(); });
  // Its file is counted by the kernel, and charged to the byte.
  const uint64_t charged_before = world_.ledger->used(Resource::kHeapBytes);
  const uint64_t heap_before = HeapNow();
  uint64_t files = 0;
  for (uint64_t index = 0; index < kObjects / 4; ++index) {
    const auto created = owner_.session->Begin()->queues().CreateMapped({.adapter = owner_.adapter, .depth = 1});
    ASSERT_TRUE(created.ok()) << created.status();
    files += created->file_bytes;
  }
  const uint64_t taken = HeapNow() - heap_before;
  const uint64_t charged = world_.ledger->used(Resource::kHeapBytes) - charged_before - files;
  EXPECT_LE(taken, charged);
  if (taken != 0) {
    EXPECT_GE(4 * taken, charged);
  }
  EachOf("queue pair", [&] {
    owner_.Pair({.domain = owner_.domain,
                 .receive_queue = owner_.queue,
                 .initiator_queue = owner_.queue,
                 .limits = {.receive_depth = 1, .initiator_depth = 1}});
  });
}

TEST_F(HeapCostTest, CoversPostedRequests) {
  const MemoryObjectId memory = owner_.Memory(64);
  const BuiltLam lam = owner_.Lam(memory, 64);
  const LocalToken privileged = *owner_.session->Begin()->domains().GetPrivilegedMemoryRegionToken(owner_.domain);
  for (const uint32_t entries : {0, 1, 4, 5, 16}) {
    const Sges sges(entries, Sge{.address = lam.first.value, .length = 8, .token = privileged});
    ExpectCovered("queue of receives of " + std::to_string(entries) + " entries", [&] {
      const QueuePairId pair =
          owner_.Pair({.domain = owner_.domain,
                       .receive_queue = owner_.queue,
                       .initiator_queue = owner_.queue,
                       .limits = {.receive_depth = kObjects, .initiator_depth = 1, .receive_entries = entries}});
      for (uint64_t index = 0; index < kObjects; ++index) {
        owner_.MustPost(pair, {Receive(sges, index)});
      }
    });
  }
}

TEST_F(HeapCostTest, CoversCompletions) {
  constexpr uint32_t kDepth = 4096;
  const CompletionQueueId queue = owner_.Queue(kDepth);
  const QueuePairId pair = owner_.Pair({.domain = owner_.domain,
                                        .receive_queue = queue,
                                        .initiator_queue = owner_.queue,
                                        .limits = {.receive_depth = kDepth, .initiator_depth = 1}});
  owner_.MustPost(pair, std::vector<WorkRequest>(kDepth, Receive()));
  ASSERT_TRUE(owner_.session->Begin()->pairs().Flush(pair).ok());
  const uint64_t before = HeapNow();
  ASSERT_EQ(owner_.session->Begin()->queues().GetResults(queue, kDepth)->size(), kDepth);
  EXPECT_LE(before - HeapNow(), HeapCostOf(Resource::kCqEntries, kDepth));
}

class PendingHeapCostTest : public HeapCostTest {
 protected:
  PendingHeapCostTest() : HeapCostTest(SlowFromTwoPages()) {}
};

// Waiting for a worker, and then as events that are never fetched.
TEST_F(PendingHeapCostTest, CoversPendingRequestsAndTheirEvents) {
  const MemoryObjectId memory = owner_.Memory(2);
  const MemoryRegionId last = owner_.Region(owner_.domain);
  const uint64_t before = HeapNow();
  const uint64_t charged_before = world_.ledger->used(Resource::kHeapBytes);
  BusyWorkers busy(*world_.workers, 2);
  for (uint64_t index = 0; index < kObjects; ++index) {
    const auto begun = owner_.BeginRegister(owner_.Region(owner_.domain), memory, 2 * kPage,
                                            {.to_events = true, .request_context = index}, nullptr);
    ASSERT_TRUE(begun.pending()) << begun.status();
  }
  const uint64_t charged = world_.ledger->used(Resource::kHeapBytes) - charged_before;
  EXPECT_LE(HeapNow() - before, charged);
  busy.Release();
  // Behind all others.
  ASSERT_TRUE(owner_.Register(last, memory, 2 * kPage).ok());
  EXPECT_LE(HeapNow() - before, charged);
}

TEST_F(HeapCostTest, CoversFastRegistrations) {
  const BuiltLam lam = owner_.Lam(owner_.Memory(64), 64);
  const std::vector<uint64_t> together = PagesOf(lam);
  std::vector<uint64_t> apart;
  for (uint64_t index = 0; index < 64; index += 2) {
    apart.push_back(together[index]);
  }
  QueueOwner peer{world_, 9};
  const QueuePairId pair = owner_.Pair();
  ConnectPairs(owner_, pair, peer, peer.Pair());
  for (const auto& pages : {together, apart}) {
    EachOf("fast registration of " + std::to_string(pages.size()) + " pages", [&] {
      const MemoryRegionId region = owner_.FastRegion(64);
      owner_.MustPost(pair, {FastRegister(region, pages)});
      owner_.Results();
    });
  }
}

// A call that is one byte too much, and the figures of its refusal.
struct HeapRefusal {
  const char* name;
  absl::Status (*call)(QueueOwner& owner, MemoryObjectId memory);
};

class HeapRefusals : public ::testing::TestWithParam<HeapRefusal> {};

TEST_P(HeapRefusals, NameWhatWasUsedBeforeAndAllThatTheCallNeeds) {
  World world;
  QueueOwner owner{world};
  const MemoryObjectId memory = owner.Memory(8);
  const Ledger& node = *world.ledger;
  const uint64_t before = node.used(Resource::kHeapBytes);
  ASSERT_TRUE(GetParam().call(owner, memory).ok());
  const uint64_t used = node.used(Resource::kHeapBytes);
  const uint64_t needed = used - before;
  Limits limits;
  limits[Resource::kHeapBytes] = used + needed - 1;
  world.ledger->SetLimits(limits);
  const absl::Status refused = GetParam().call(owner, memory);
  EXPECT_THAT(refused, FailsWith(ErrorReason::QUOTA_HEAP_BYTES));
  EXPECT_EQ(ErrorInfoOf(refused).used, used);
  EXPECT_EQ(ErrorInfoOf(refused).requested, needed);
  EXPECT_EQ(node.used(Resource::kHeapBytes), used);
}

INSTANTIATE_TEST_SUITE_P(
    Calls, HeapRefusals,
    testing::Values(
        HeapRefusal{
            "AllocateMemory",
            [](QueueOwner& owner, MemoryObjectId) { return owner.TryAllocate({.size = 3000 * kPage}).status(); }},
        HeapRefusal{"ImportMemory",
                    [](QueueOwner& owner, MemoryObjectId) {
                      return owner.session->Begin()->memory().Import(3000 * kPage).status();
                    }},
        HeapRefusal{"CreateCq",
                    [](QueueOwner& owner, MemoryObjectId) {
                      return owner.session->Begin()->queues().Create(owner.adapter, 64, 0).status();
                    }},
        HeapRefusal{
            "CreateCqMapped",
            [](QueueOwner& owner, MemoryObjectId) {
              return owner.session->Begin()->queues().CreateMapped({.adapter = owner.adapter, .depth = 64}).status();
            }},
        HeapRefusal{"CreateQp",
                    [](QueueOwner& owner, MemoryObjectId) {
                      return owner.session->Begin()->pairs().Create(owner.PairArguments()).status();
                    }},
        HeapRefusal{"BuildLam",
                    [](QueueOwner& owner, MemoryObjectId memory) { return owner.TryLam(memory, 8 * kPage).status(); }}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace rnicd::core
