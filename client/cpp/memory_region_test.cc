#include "client/cpp/memory_region.h"

#include <future>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/fake_daemon_test.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

constexpr uint64_t kSize = 1u << 20;

class MemoryRegionTest : public testing::Test {
 protected:
  // Starts a registration that pends, and returns where its outcome will be.
  std::future<absl::StatusOr<MemoryRegion>> RegisterPending() {
    daemon_.state().pend = true;
    auto promise = std::make_shared<std::promise<absl::StatusOr<MemoryRegion>>>();
    MemoryRegion::RegisterAsync(
        *memory_, memory_->bytes(), kMrFlagRemoteWrite,
        [promise](absl::StatusOr<MemoryRegion> region) { promise->set_value(std::move(region)); });
    return promise->get_future();
  }
  std::vector<std::span<const std::byte>> Parts(size_t count, size_t bytes) {
    std::vector<std::span<const std::byte>> parts;
    for (size_t index = 0; index < count; ++index) {
      parts.push_back(memory_->bytes().subspan(index * bytes, bytes));
    }
    return parts;
  }

  FakeDaemon daemon_;
  absl::StatusOr<Client> client_ = Client::Connect({.socket_dir = daemon_.socket_dir()});
  absl::StatusOr<Memory> memory_ = Memory::Allocate(*client_, {.size = kSize});
};

TEST_F(MemoryRegionTest, RegisteredRegionHasAddressLengthAndTokens) {
  {
    const auto region = MemoryRegion::Register(*memory_, memory_->bytes().subspan(4096, 8192), kMrFlagRemoteWrite);
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_TRUE(region->registered());
    EXPECT_EQ(region->base_address().value, memory_->address().value + 4096);
    EXPECT_EQ(region->length(), 8192u);
    EXPECT_EQ(region->local_token().value, region->id().value);
    EXPECT_EQ(region->remote_token().value, region->id().value << 8);
  }
  EXPECT_EQ(daemon_.state().LiveRegions(), 0u);
}

TEST_F(MemoryRegionTest, RefusedRegistrationLeavesNoRegion) {
  daemon_.state().refuse_length_above = 4096;
  const auto region = MemoryRegion::Register(*memory_, 0);
  EXPECT_TRUE(FailedWith(region.status(), ErrorReason::LENGTH_ABOVE_ADAPTER_LIMIT));
  EXPECT_EQ(daemon_.state().LiveRegions(), 0u);
}

TEST_F(MemoryRegionTest, PartOutsideTheMemoryNeedsNoCall) {
  const std::vector<std::byte> other(10);
  EXPECT_TRUE(FailedWith(MemoryRegion::Register(*memory_, other, 0).status(), ErrorReason::MDL_RANGE_OUTSIDE_MEMORY));
  EXPECT_EQ(daemon_.state().rpcs, 0);
}

TEST_F(MemoryRegionTest, DeregisterKillsTokensAndCloseEndsTheRegion) {
  auto region = MemoryRegion::Register(*memory_, 0);
  ASSERT_TRUE(region->Deregister().ok());
  EXPECT_FALSE(region->registered());
  EXPECT_EQ(region->remote_token().value, 0u);
  ASSERT_TRUE(region->Close().ok());
  EXPECT_EQ(daemon_.state().LiveRegions(), 0u);
  EXPECT_TRUE(FailedWith(region->Close(), ErrorReason::OBJECT_NOT_FOUND));
  EXPECT_TRUE(FailedWith(region->Deregister(), ErrorReason::REGION_NOT_REGISTERED));
}

TEST_F(MemoryRegionTest, MovedRegionIsClosedOnce) {
  auto first = MemoryRegion::Register(*memory_, 0);
  auto second = MemoryRegion::Register(*memory_, 0);
  EXPECT_EQ(daemon_.state().LiveRegions(), 2u);
  *first = *std::move(second);
  EXPECT_EQ(daemon_.state().LiveRegions(), 1u);
  EXPECT_FALSE(second->registered());
  const MemoryRegion taken = *std::move(first);
  EXPECT_TRUE(taken.registered());
  EXPECT_FALSE(first->registered());
  EXPECT_EQ(daemon_.state().LiveRegions(), 1u);
}

TEST_F(MemoryRegionTest, RegionKeepsMemoryAndSessionWhenTheyGoFirst) {
  {
    const auto region = MemoryRegion::Register(*memory_, 0);
    memory_ = absl::CancelledError();
    client_ = absl::CancelledError();
    EXPECT_EQ(daemon_.state().LiveMemory(), 1u);
    EXPECT_EQ(daemon_.state().sessions_open, 1);
  }
  EXPECT_EQ(daemon_.state().LiveRegions(), 0u);
  EXPECT_EQ(daemon_.state().LiveMemory(), 0u);
  EXPECT_EQ(daemon_.state().sessions_open, 0);
}

TEST_F(MemoryRegionTest, ChainOfTwoMemoriesKeepsBoth) {
  auto other = Memory::Allocate(*client_, {.size = kSize});
  const std::vector<MdlEntry> chain = {*memory_->Entry(memory_->bytes()), *other->Entry(other->bytes())};
  auto region = MemoryRegion::RegisterChain(*client_, chain, 2 * kSize, 0);
  ASSERT_TRUE(region.ok());
  EXPECT_EQ(region->length(), 2 * kSize);
  EXPECT_EQ(daemon_.state().LiveMemory(), 2u);
}

TEST_F(MemoryRegionTest, BatchRegistersAndClosesInThreeCalls) {
  const auto parts = Parts(100, 4096);
  auto outcomes = MemoryRegion::RegisterBatch(*memory_, parts, kMrFlagLocalWrite);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  ASSERT_EQ(outcomes->size(), 100u);
  std::vector<MemoryRegion> regions;
  for (size_t index = 0; index < outcomes->size(); ++index) {
    ASSERT_TRUE((*outcomes)[index].ok());
    regions.push_back(*std::move((*outcomes)[index]));
    EXPECT_EQ(regions.back().base_address().value, memory_->address().value + index * 4096);
  }
  EXPECT_TRUE(MemoryRegion::CloseBatch(std::move(regions)).ok());
  EXPECT_EQ(daemon_.state().LiveRegions(), 0u);
  EXPECT_EQ(daemon_.state().rpcs, 3);
}

TEST_F(MemoryRegionTest, ItemThatFailsDoesNotStopTheOthersAndLeavesNoRegion) {
  daemon_.state().refuse_length_above = 4096;
  std::vector<std::span<const std::byte>> parts = Parts(3, 4096);
  parts[1] = memory_->bytes();
  const auto outcomes = MemoryRegion::RegisterBatch(*memory_, parts, 0);
  ASSERT_TRUE(outcomes.ok());
  EXPECT_TRUE((*outcomes)[0].ok());
  EXPECT_TRUE(FailedWith((*outcomes)[1].status(), ErrorReason::LENGTH_ABOVE_ADAPTER_LIMIT));
  EXPECT_TRUE((*outcomes)[2].ok());
  EXPECT_EQ(daemon_.state().LiveRegions(), 2u);
}

TEST_F(MemoryRegionTest, BatchNamesThePartThatLiesOutside) {
  std::vector<std::span<const std::byte>> parts = Parts(3, 4096);
  parts[2] = {};
  const auto outcomes = MemoryRegion::RegisterBatch(*memory_, parts, 0);
  EXPECT_EQ(ErrorInfoOf(outcomes.status()).field, "parts[2].part");
}

TEST_F(MemoryRegionTest, AsyncRegistrationThatDoesNotPendCallsBackBeforeReturning) {
  int calls = 0;
  MemoryRegion::RegisterAsync(*memory_, memory_->bytes(), 0, [&calls](const absl::StatusOr<MemoryRegion>& region) {
    ++calls;
    EXPECT_TRUE(region.ok() && region->registered());
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(daemon_.state().LiveRegions(), 0u);
}

TEST_F(MemoryRegionTest, PendingRegistrationCompletesOnTheEventStream) {
  auto outcome = RegisterPending();
  EXPECT_EQ(outcome.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  daemon_.Complete(daemon_.WaitForPending());
  const absl::StatusOr<MemoryRegion> region = outcome.get();
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(region->remote_token().value, 0xABCDu);
}

TEST_F(MemoryRegionTest, PendingRegistrationThatFailsCarriesItsReasonAndLeavesNoRegion) {
  auto outcome = RegisterPending();
  daemon_.Complete(daemon_.WaitForPending(), ErrorReason::DEVICE_OUT_OF_RESOURCES);
  EXPECT_TRUE(FailedWith(outcome.get().status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_EQ(daemon_.state().LiveRegions(), 0u);
}

TEST_F(MemoryRegionTest, RefusedAsyncRegistrationCallsBackOnce) {
  daemon_.state().refuse_length_above = 4096;
  EXPECT_TRUE(FailedWith(RegisterPending().get().status(), ErrorReason::LENGTH_ABOVE_ADAPTER_LIMIT));
  EXPECT_EQ(daemon_.state().LiveRegions(), 0u);
}

TEST_F(MemoryRegionTest, PendingCloseCompletesOnTheEventStream) {
  auto region = MemoryRegion::Register(*memory_, 0);
  daemon_.state().pend = true;
  std::promise<absl::Status> closed;
  MemoryRegion::CloseAsync(*std::move(region), [&closed](const absl::Status& status) { closed.set_value(status); });
  daemon_.Complete(daemon_.WaitForPending());
  EXPECT_TRUE(closed.get_future().get().ok());
  EXPECT_EQ(daemon_.state().LiveRegions(), 0u);
}

TEST_F(MemoryRegionTest, EndOfSessionFailsWhatPendsAndWhatWouldPend) {
  auto outcome = RegisterPending();
  daemon_.EndSession("daemon_stopping");
  const absl::Status status = outcome.get().status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::SESSION_ENDING));
  EXPECT_EQ(ErrorInfoOf(status).field, "daemon_stopping");
  EXPECT_TRUE(FailedWith(RegisterPending().get().status(), ErrorReason::SESSION_ENDING));
}

TEST_F(MemoryRegionTest, LostDaemonFailsWhatPends) {
  auto outcome = RegisterPending();
  daemon_.WaitForPending();
  daemon_.Die();
  EXPECT_TRUE(IsTransportFailure(outcome.get().status()));
}

TEST_F(MemoryRegionTest, EventsAreRefusedThenPendingIsRefusedToo) {
  daemon_.state().refuse_event_stream = true;
  std::promise<void> ended;
  client_ = Client::Connect(
      {.socket_dir = daemon_.socket_dir(), .on_session_ended = [&ended](const absl::Status&) { ended.set_value(); }});
  memory_ = Memory::Allocate(*client_, {.size = kSize});
  ended.get_future().wait();
  EXPECT_TRUE(FailedWith(RegisterPending().get().status(), ErrorReason::EVENT_STREAM_ALREADY_OPEN));
}

TEST_F(MemoryRegionTest, CallbackMayCallTheDaemonAndDropTheLastOwnerOfTheSession) {
  memory_ = absl::CancelledError();
  client_ = absl::CancelledError();
  daemon_.state().pend = true;
  for (int round = 0; round < 20; ++round) {
    auto client = Client::Connect({.socket_dir = daemon_.socket_dir()});
    auto memory = Memory::Allocate(*client, {.size = kSize});
    std::promise<absl::Status> called;
    MemoryRegion::RegisterAsync(*memory, memory->bytes(), 0, [&called](absl::StatusOr<MemoryRegion> region) {
      absl::Status outcome = region.status();
      outcome.Update(region.ok() ? region->Deregister() : absl::OkStatus());
      outcome.Update(region.ok() ? region->Close() : absl::OkStatus());
      called.set_value(outcome);
    });
    memory = absl::CancelledError();
    client = absl::CancelledError();
    daemon_.Complete(daemon_.WaitForPending());
    EXPECT_EQ(called.get_future().get(), absl::OkStatus());
    // The callback's thread closes the session.
    while (daemon_.state().sessions_open != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(daemon_.state().LiveMemory(), 0u);
    MutexLock lock(daemon_.state().mutex);
    daemon_.state().pending_contexts.clear();
  }
}

}  // namespace
}  // namespace rnicd::inline client
