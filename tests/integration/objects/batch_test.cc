// Batches: order is kept, each item has one outcome, and a bad item does not affect the others.
#include <future>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/event_reader.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/held_card.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

class Batches : public DaemonTest {
 protected:
  explicit Batches(const std::vector<std::string>& flags = {}) : DaemonTest(flags) {}

  static std::vector<uint64_t> CreateRegions(TestSession& session, int count) {
    v1::BatchCreateMrRequest request;
    for (int index = 0; index < count; ++index) {
      request.add_items()->set_pd_id(session.pd_id());
    }
    const auto created = session.Call(&MemoryStub::BatchCreateMr, request);
    ExpectOk(created);
    EXPECT_EQ(created.response.outcomes_size(), count);
    std::vector<uint64_t> ids;
    for (const v1::CreateMrOutcome& outcome : created.response.outcomes()) {
      EXPECT_TRUE(outcome.has_response()) << outcome.ShortDebugString();
      ids.push_back(outcome.response().mr_id());
    }
    return ids;
  }
};

// The number and size of regions for which users of other stacks report that one call per region is slow.
TEST_F(Batches, OneThousandTwoHundredAndSixtyFiveRegions) {
  constexpr int kCount = 1265;
  constexpr uint64_t kRegionBytes = 40 << 10;
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kCount * kRegionBytes);
  const std::vector<uint64_t> ids = CreateRegions(session, kCount);
  EXPECT_EQ(std::set<uint64_t>(ids.begin(), ids.end()).size(), static_cast<size_t>(kCount));
  v1::BatchRegisterMrRequest request;
  for (uint64_t index = 0; index < kCount; ++index) {
    const uint64_t offset = index * kRegionBytes;
    *request.add_items() =
        RegisterRequest(ids[index], {MdlEntry(memory, offset, kRegionBytes, kBase + offset)}, kRegionBytes);
  }
  const auto registered = session.Call(&MemoryStub::BatchRegisterMr, request);
  ExpectOk(registered);
  ASSERT_EQ(registered.response.outcomes_size(), kCount);
  std::set<uint32_t> tokens;
  for (int index = 0; index < kCount; ++index) {
    const v1::Registration& registration = registered.response.outcomes(index).response().registration();
    EXPECT_EQ(registration.base_virtual_address(), kBase + static_cast<uint64_t>(index) * kRegionBytes);
    tokens.insert(registration.remote_token());
  }
  EXPECT_EQ(tokens.size(), static_cast<size_t>(kCount));
  const v1::GetStatusResponse status = AdminStatus(daemon());
  EXPECT_EQ(status.device_regions(), static_cast<uint64_t>(kCount));
  EXPECT_EQ(status.registered_pages(), kCount * kRegionBytes / kPage);
  EXPECT_EQ(AdminRegions(daemon()).size(), static_cast<size_t>(kCount));
  v1::BatchDeregisterMrRequest deregister;
  v1::BatchCloseMrRequest close;
  for (const uint64_t id : ids) {
    deregister.add_items()->set_mr_id(id);
    close.add_items()->set_mr_id(id);
  }
  ExpectOk(session.Call(&MemoryStub::BatchDeregisterMr, deregister));
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 0u);
  ExpectOk(session.Call(&MemoryStub::BatchCloseMr, close));
  EXPECT_EQ(session.Use("regions").used(), 0u);
}

TEST_F(Batches, BadItemsAreReportedInTheirPlaces) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(2 * kPage);
  const std::vector<uint64_t> ids = CreateRegions(session, 4);
  const std::vector<v1::MdlEntry> page = {MdlEntry(memory, 0, kPage, kBase)};
  v1::BatchRegisterMrRequest request;
  *request.add_items() = RegisterRequest(ids[0], page, kPage);
  *request.add_items() = RegisterRequest(ids[1], page, kPage + 1);
  *request.add_items() = RegisterRequest(ids[2], {MdlEntry(memory, 0, kPage, kBase), MdlEntry(memory, kPage, 0, 1)}, 1);
  *request.add_items() = RegisterRequest(12345, page, kPage);
  *request.add_items() = RegisterRequest(ids[0], page, kPage);
  *request.add_items() = RegisterRequest(ids[3], page, kPage);
  request.mutable_items(5)->set_flags(v1::MR_FLAG_ALLOW_REMOTE_READ);
  const auto registered = session.Call(&MemoryStub::BatchRegisterMr, request);
  ExpectOk(registered);
  ASSERT_EQ(registered.response.outcomes_size(), 6);
  EXPECT_TRUE(registered.response.outcomes(0).has_response());
  ExpectRefused(registered.response.outcomes(1).error(), ErrorReason::LENGTH_ABOVE_CHAIN, "items[1].length");
  ExpectRefused(registered.response.outcomes(2).error(), ErrorReason::MDL_ENTRY_EMPTY,
                "items[2].mdl_chain[1].byte_count");
  ExpectRefused(registered.response.outcomes(3).error(), ErrorReason::OBJECT_NOT_FOUND, "items[3].mr_id");
  ExpectRefused(registered.response.outcomes(4).error(), ErrorReason::REGION_ALREADY_REGISTERED, "items[4].mr_id");
  EXPECT_TRUE(registered.response.outcomes(5).has_response());
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 2u);
}

// More than an owner may have waiting for their seal.
TEST_F(Batches, AHundredMemoryObjectsAreAllocatedAndSealed) {
  constexpr int kCount = 100;
  TestSession session(daemon());
  v1::BatchAllocateMemoryRequest allocate;
  for (int index = 0; index < kCount; ++index) {
    allocate.add_items()->set_size(kPage);
  }
  const auto allocated = session.Call(&MemoryStub::BatchAllocateMemory, allocate);
  ExpectOk(allocated);
  ASSERT_EQ(allocated.response.outcomes_size(), kCount);
  EXPECT_EQ(session.Use("memory_objects").used(), static_cast<uint64_t>(kCount));
  v1::BatchSealMemoryRequest seal;
  for (const v1::AllocateMemoryOutcome& outcome : allocated.response.outcomes()) {
    EXPECT_TRUE(session.Fetch(outcome.response().fd_ticket()).valid());
    seal.add_items()->set_memory_id(outcome.response().memory_id());
  }
  const auto sealed = session.Call(&MemoryStub::BatchSealMemory, seal);
  ExpectOk(sealed);
  ASSERT_EQ(sealed.response.outcomes_size(), kCount);
  for (const v1::SealMemoryOutcome& outcome : sealed.response.outcomes()) {
    EXPECT_EQ(outcome.response().size(), kPage) << outcome.ShortDebugString();
  }
}

class HeldBatches : public Batches {
 protected:
  explicit HeldBatches(std::vector<std::string> flags = {"--pending_threshold_bytes=4096"})
      : Batches(Holdable(std::move(flags))) {}

  void AwaitState(uint64_t mr, const std::string& state) const {
    EXPECT_TRUE(Eventually([&] { return AdminRegion(daemon(), mr).value_or(v1::RegionInfo()).state() == state; }));
  }
  // Calls with registrations held until this region is in that state.
  template <typename Method, typename Request>
  auto CallUntil(TestSession& session, const Method* method, const Request& request, uint64_t mr,
                 const std::string& state) {
    HeldRegistrations held;
    auto answer = std::async(std::launch::async, [&] { return session.Call(method, request); });
    AwaitState(mr, state);
    held.LetGo();
    return answer.get();
  }

 private:
  static std::vector<std::string> Holdable(std::vector<std::string> flags) {
    flags.push_back(HoldableRegistrationsFlag());
    return flags;
  }
};

// Each item states whether it may pend; the call waits for one that may not.
TEST_F(HeldBatches, ItemsPendOneByOne) {
  TestSession session(daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const std::vector<uint64_t> ids = CreateRegions(session, 3);
  v1::BatchRegisterMrRequest request;
  for (const uint64_t id : ids) {
    *request.add_items() = RegisterRequest(id, {MdlEntry(memory, 0, kPage, kBase)}, kPage);
  }
  request.mutable_items(0)->set_allow_pending(true);
  request.mutable_items(0)->set_request_context(100);
  request.mutable_items(2)->set_allow_pending(true);
  request.mutable_items(2)->set_request_context(102);
  const auto registered = CallUntil(session, &MemoryStub::BatchRegisterMr, request, ids[1], "registering");
  ExpectOk(registered);
  ASSERT_EQ(registered.response.outcomes_size(), 3);
  EXPECT_EQ(registered.response.outcomes(0).response().ntstatus(), kStatusPending);
  EXPECT_EQ(registered.response.outcomes(1).response().ntstatus(), kStatusSuccess);
  EXPECT_EQ(registered.response.outcomes(1).response().registration().length(), kPage);
  EXPECT_EQ(registered.response.outcomes(2).response().ntstatus(), kStatusPending);
  const std::set<uint64_t> contexts = {events.NextCompletion().request_context(),
                                       events.NextCompletion().request_context()};
  EXPECT_EQ(contexts, (std::set<uint64_t>{100, 102}));
}

// An item that is slow, and may not pend, has its outcome before the next item begins.
TEST_F(HeldBatches, ItemsThatNameTheSameObjectAreDoneInOrder) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t region = session.CreateMr();
  const uint64_t fast_region = session.CreateMr(true);
  v1::BatchRegisterMrRequest register_twice;
  v1::BatchInitializeFastRegisterMrRequest initialize_twice;
  for (int item = 0; item < 2; ++item) {
    *register_twice.add_items() = RegisterRequest(region, {MdlEntry(memory, 0, kPage, kBase)}, kPage);
    v1::InitializeFastRegisterMrRequest& initialize = *initialize_twice.add_items();
    initialize.set_mr_id(fast_region);
    initialize.set_adapter_page_count(16);
  }
  const auto registered = CallUntil(session, &MemoryStub::BatchRegisterMr, register_twice, region, "registering");
  ASSERT_EQ(registered.response.outcomes_size(), 2);
  EXPECT_EQ(registered.response.outcomes(0).response().ntstatus(), kStatusSuccess);
  ExpectRefused(registered.response.outcomes(1).error(), ErrorReason::REGION_ALREADY_REGISTERED, "items[1].mr_id");
  const auto initialized =
      CallUntil(session, &MemoryStub::BatchInitializeFastRegisterMr, initialize_twice, fast_region, "initializing");
  ASSERT_EQ(initialized.response.outcomes_size(), 2);
  EXPECT_EQ(initialized.response.outcomes(0).response().ntstatus(), kStatusSuccess);
  ExpectRefused(initialized.response.outcomes(1).error(), ErrorReason::REGION_ALREADY_INITIALIZED, "items[1].mr_id");
}

// All workloads share one thread of the front door. A long batch is made by workers.
class LongBatches : public HeldBatches {
 protected:
  LongBatches() : HeldBatches({"--rpc_threads=1"}) {}
};

TEST_F(LongBatches, HoldUpNeitherOthersNorTheEndOfTheirSession) {
  constexpr int kCount = 2000;
  TestSession session(daemon());
  RawClient another_connection(daemon().rpc_socket());
  v1::JoinSessionRequest join;
  join.set_session_id(session.session_id());
  ExpectOk(another_connection.Call(&SessionStub::JoinSession, join));
  const uint64_t memory = session.SealedMemory(kPage);
  const std::vector<uint64_t> regions = CreateRegions(session, kCount);
  v1::BatchRegisterMrRequest request;
  for (const uint64_t id : regions) {
    *request.add_items() = RegisterRequest(id, {MdlEntry(memory, 0, kPage, kBase)}, kPage);
  }
  HeldRegistrations held;
  auto batch = std::async(std::launch::async, [&] { return session.Call(&MemoryStub::BatchRegisterMr, request); });
  AwaitState(regions[0], "registering");
  EXPECT_NE(TestSession(daemon()).session_id(), session.session_id());
  auto closed = std::async(std::launch::async, [&] { return another_connection.Call(&SessionStub::CloseSession, {}); });
  EXPECT_TRUE(Eventually([&] { return !session.Call(&SessionStub::GetSession, {}).ok(); }));
  held.LetGo();
  ExpectOk(closed.get());
  const auto registered = batch.get();
  ASSERT_EQ(registered.response.outcomes_size(), kCount) << registered.message;
  ExpectRefused(registered.response.outcomes(kCount - 1).error(), ErrorReason::SESSION_ENDING, "items[1999]");
}

}  // namespace
}  // namespace rnicd::test
