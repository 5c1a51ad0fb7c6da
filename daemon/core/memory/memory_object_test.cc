#include "daemon/core/memory/memory_object.h"

#include <thread>
#include <vector>

#include "daemon/core/memory/memory_object_fixture_test.h"

namespace rnicd::core {
namespace {

TEST_F(MemoryObjectTest, ALongerFileIsUsedUpToTheAnnouncedSize) {
  const auto object = NewObject();
  ASSERT_TRUE(object->Attach(MemoryFile(10 * kSize)).ok());
  ASSERT_TRUE(object->Seal().ok());
  EXPECT_EQ(object->BeginUse()->object().mapping().size(), kSize);
}

TEST_F(MemoryObjectTest, WhicheverCallFailsInAllocateNothingIsLeft) {
  const char* const methods[] = {"CreateMemoryFile", "AddSeals", "Map", "BindToNumaNode", "Populate"};
  for (const char* const method : methods) {
    os_.FailNext(method, MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), 1);
    const auto object = NewObject();
    EXPECT_THAT(object->Allocate({.page_bytes = kPage, .numa_node = 0}),
                FailsWith(ErrorReason::MEMORY_PAGES_UNAVAILABLE))
        << method;
    EXPECT_EQ(os_.live_mappings(), 0u) << method;
    EXPECT_THAT(object->BeginUse().status(), FailsWith(ErrorReason::MEMORY_NOT_ATTACHED)) << method;
    EXPECT_TRUE(object->Release().ok()) << method;
    EXPECT_EQ(ChargedBytes(), 0u) << method;
  }
}

TEST_F(MemoryObjectTest, WhicheverCallFailsInAttachNothingIsLeft) {
  for (const char* const method : {"Inspect", "AddSeals", "Map"}) {
    os_.FailNext(method, MakeError(ErrorReason::INTERNAL_FAULT), 1);
    const auto object = NewObject();
    UniqueFd file = MemoryFile();
    const int number = file.get();
    EXPECT_THAT(object->Attach(std::move(file)), FailsWith(ErrorReason::INTERNAL_FAULT)) << method;
    EXPECT_FALSE(IsOpen(number)) << method;
    EXPECT_EQ(os_.live_mappings(), 0u) << method;
    EXPECT_TRUE(object->Attach(MemoryFile()).ok()) << method;
    EXPECT_TRUE(object->Release().ok()) << method;
    EXPECT_EQ(ChargedBytes(), 0u) << method;
  }
}

TEST_F(MemoryObjectTest, AnUnknownNumaNodeIsRefusedAndNothingIsLeft) {
  const auto object = NewObject();
  EXPECT_THAT(object->Allocate({.page_bytes = kPage, .numa_node = 1u << 20}),
              FailsAt(ErrorReason::NUMA_NODE_UNKNOWN, "numa_node"));
  EXPECT_EQ(os_.live_mappings(), 0u);
}

TEST_F(MemoryObjectTest, BeforeTheAttachNothingCanBeDoneWithIt) {
  const auto object = NewObject();
  EXPECT_THAT(object->Seal(), FailsWith(ErrorReason::MEMORY_NOT_ATTACHED));
  EXPECT_THAT(object->DuplicateFile().status(), FailsWith(ErrorReason::MEMORY_NOT_ATTACHED));
  EXPECT_THAT(object->BeginUse().status(), FailsWith(ErrorReason::MEMORY_NOT_ATTACHED));
}

// Sealed, the file could not be mapped writable any more, and its owner has no mapping yet.
TEST_F(MemoryObjectTest, AnAllocatedFileIsNotSealedBeforeItsOwnerHasFetchedIt) {
  const auto object = NewObject();
  ASSERT_TRUE(object->Allocate({.page_bytes = kPage}).ok());
  EXPECT_THAT(object->Seal(), FailsAt(ErrorReason::MEMORY_NOT_ATTACHED, "memory_id"));
  const auto file = object->DuplicateFile();
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(OwnersMapping(file->get()).made()) << "the refusal has sealed nothing";
  EXPECT_TRUE(object->Seal().ok());
}

TEST_F(MemoryObjectTest, BeforeTheSealItCannotBeUsed) {
  EXPECT_THAT(Attached(MemoryFile())->BeginUse().status(), FailsWith(ErrorReason::MEMORY_NOT_SEALED));
}

TEST_F(MemoryObjectTest, IsAttachedOnceAndSealedOnce) {
  const auto object = Attached(MemoryFile());
  EXPECT_THAT(object->Attach(MemoryFile()), FailsWith(ErrorReason::MEMORY_ALREADY_SEALED));
  EXPECT_THAT(object->Allocate({.page_bytes = kPage}), FailsWith(ErrorReason::MEMORY_ALREADY_SEALED));
  ASSERT_TRUE(object->Seal().ok());
  EXPECT_THAT(object->Seal(), FailsWith(ErrorReason::MEMORY_ALREADY_SEALED));
  EXPECT_THAT(object->DuplicateFile().status(), FailsWith(ErrorReason::MEMORY_ALREADY_SEALED));
  EXPECT_EQ(os_.live_mappings(), 1u);
}

TEST_F(MemoryObjectTest, ASealThatFailedCanBeTriedAgain) {
  const auto object = Attached(MemoryFile());
  os_.FailNext("AddSeals", MakeError(ErrorReason::MEMORY_SEAL_REFUSED), 1);
  EXPECT_THAT(object->Seal(), FailsWith(ErrorReason::MEMORY_SEAL_REFUSED));
  EXPECT_TRUE(object->Seal().ok());
}

TEST_F(MemoryObjectTest, ASealThatFoundNoPagesCanBeTriedAgain) {
  const auto object = Attached(MemoryFile());
  os_.FailNext("Populate", MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), 1);
  EXPECT_THAT(object->Seal(), FailsWith(ErrorReason::MEMORY_PAGES_UNAVAILABLE));
  EXPECT_THAT(object->BeginUse().status(), FailsWith(ErrorReason::MEMORY_NOT_SEALED));
  EXPECT_TRUE(object->Seal().ok());
}

TEST_F(MemoryObjectTest, CannotBeReleasedWhileItIsUsed) {
  const auto object = Attached(MemoryFile());
  ASSERT_TRUE(object->Seal().ok());
  {
    auto first = object->BeginUse();
    const MemoryObject::Use moved = *std::move(first);
    const auto second = object->BeginUse();
    EXPECT_THAT(object->Release(), FailsAt(ErrorReason::MEMORY_IN_USE, "memory_id"));
  }
  EXPECT_EQ(ChargedBytes(), kSize);
  EXPECT_TRUE(object->Release().ok());
  EXPECT_EQ(ChargedBytes(), 0u);
  EXPECT_EQ(ledger_->used(Resource::kMemoryObjects), 0u);
  EXPECT_EQ(os_.live_mappings(), 0u);
}

TEST_F(MemoryObjectTest, AReleasedObjectCannotBeUsedOrReleasedAgain) {
  const auto object = Attached(MemoryFile());
  ASSERT_TRUE(object->Seal().ok());
  ASSERT_TRUE(object->Release().ok());
  EXPECT_FALSE(object->BeginUse().ok());
  EXPECT_THAT(object->Release(), FailsWith(ErrorReason::MEMORY_IN_USE));
  EXPECT_THAT(object->Attach(MemoryFile()), FailsWith(ErrorReason::MEMORY_IN_USE));
}

TEST_F(MemoryObjectTest, AnObjectThatIsDroppedUnmapsAndRefunds) {
  Attached(MemoryFile()).reset();
  EXPECT_EQ(os_.live_mappings(), 0u);
  EXPECT_EQ(ChargedBytes(), 0u);
}

TEST_F(MemoryObjectTest, AUseKeepsTheMappingAliveBeyondTheLastOwner) {
  auto object = Attached(MemoryFile());
  ASSERT_TRUE(object->Seal().ok());
  {
    const auto use = object->BeginUse();
    ASSERT_TRUE(use.ok());
    object.reset();
    EXPECT_EQ(os_.live_mappings(), 1u);
    use->object().mapping()[0] = std::byte{1};
  }
  EXPECT_EQ(os_.live_mappings(), 0u);
}

TEST_F(MemoryObjectTest, OfRacingCallsTheLosersAreRefusedAndNothingLeaks) {
  for (int round = 0; round < 50; ++round) {
    const auto object = NewObject();
    std::atomic<int> attached{0};
    std::vector<std::thread> threads;
    for (int index = 0; index < 3; ++index) {
      threads.emplace_back([&] { attached += object->Attach(MemoryFile()).ok() ? 1 : 0; });
    }
    threads.emplace_back([&] { (void)object->Seal(); });
    threads.emplace_back([&] { (void)object->Release(); });
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_LE(attached, 1);
    (void)object->Release();
    ASSERT_EQ(os_.live_mappings(), 0u);
    ASSERT_EQ(ChargedBytes(), 0u);
  }
}

}  // namespace
}  // namespace rnicd::core
