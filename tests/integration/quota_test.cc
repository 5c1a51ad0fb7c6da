// Limits: each is refused with its own reason and its figures, and what is given back can be had again.
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/event_reader.h"
#include "tests/support/expect.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"
#include "tests/support/tested_provider.h"

namespace rnicd::test {
namespace {

// More of anything than a daemon should ever allow by default.
constexpr int kManyObjects = 5000;

void ExpectFigures(const CallOutcome& refused, ErrorReason reason, uint64_t limit, uint64_t used, uint64_t requested) {
  ExpectRefused(refused, reason);
  EXPECT_EQ(refused.detail.limit(), limit);
  EXPECT_EQ(refused.detail.used(), used);
  EXPECT_EQ(refused.detail.requested(), requested);
}

class Quotas : public DaemonTest {
 protected:
  Quotas()
      : DaemonTest({"--max_memory_bytes_per_session=65536", "--max_memory_objects_per_session=4",
                    "--max_pinned_bytes_per_session=40960", "--max_regions_per_session=3", "--max_sessions_per_uid=3",
                    "--max_pinned_bytes=61440"}) {}

  static CallResult<v1::ImportMemoryResponse> TryImport(TestSession& session, uint64_t size) {
    v1::ImportMemoryRequest request;
    request.set_size(size);
    return session.Call(&MemoryStub::ImportMemory, request);
  }
  static CallResult<v1::AllocateMemoryResponse> TryAllocate(TestSession& session, uint64_t size) {
    v1::AllocateMemoryRequest request;
    request.set_size(size);
    return session.Call(&MemoryStub::AllocateMemory, request);
  }
};

TEST_F(Quotas, MemoryBytes) {
  TestSession session(daemon());
  ExpectFigures(TryAllocate(session, 65536 + kPage), ErrorReason::QUOTA_MEMORY_BYTES, 65536, 0, 65536 + kPage);
  const v1::AllocateMemoryResponse memory = session.Allocate(65536);
  ExpectFigures(TryAllocate(session, kPage), ErrorReason::QUOTA_MEMORY_BYTES, 65536, 65536, kPage);
  ExpectFigures(TryImport(session, kPage), ErrorReason::QUOTA_MEMORY_BYTES, 65536, 65536, kPage);
  ExpectOk(session.Release(memory.memory_id()));
  ExpectOk(TryAllocate(session, 65536));
}

TEST_F(Quotas, MemoryObjects) {
  TestSession session(daemon());
  for (int count = 0; count < 4; ++count) {
    ExpectOk(TryImport(session, kPage));
  }
  ExpectFigures(TryImport(session, kPage), ErrorReason::QUOTA_MEMORY_OBJECTS, 4, 4, 1);
  ExpectFigures(TryAllocate(session, kPage), ErrorReason::QUOTA_MEMORY_OBJECTS, 4, 4, 1);
}

TEST_F(Quotas, Regions) {
  TestSession session(daemon());
  std::vector<uint64_t> regions;
  for (int count = 0; count < 3; ++count) {
    regions.push_back(session.CreateMr());
  }
  v1::CreateMrRequest request;
  request.set_pd_id(session.pd_id());
  ExpectFigures(session.Call(&MemoryStub::CreateMr, request), ErrorReason::QUOTA_REGIONS, 3, 3, 1);
  ExpectOk(session.CloseMr(regions[0]));
  ExpectOk(session.Call(&MemoryStub::CreateMr, request));
}

// Counted in whole pages, as the card pins them.
TEST_F(Quotas, PinnedBytesOfASession) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(16 * kPage);
  session.RegisterWhole(session.CreateMr(), memory, 5 * kPage);
  const uint64_t mr = session.CreateMr();
  const uint64_t offset = 5 * kPage + 100;
  ExpectFigures(session.Register(RegisterRequest(mr, {MdlEntry(memory, offset, 5 * kPage, kBase + 100)}, 5 * kPage)),
                ErrorReason::QUOTA_PINNED_BYTES, 40960, 5 * kPage, 6 * kPage);
  // Pages that are pinned already cost nothing more.
  session.RegisterWhole(mr, memory, 5 * kPage);
  EXPECT_EQ(session.Use("pinned_bytes").used(), 5 * kPage);
  EXPECT_EQ(session.Use("registered_bytes").used(), 10 * kPage);
}

TEST_F(Quotas, PinnedBytesOfTheNode) {
  TestSession first(daemon());
  TestSession second(daemon());
  first.RegisterWhole(first.CreateMr(), first.SealedMemory(10 * kPage), 10 * kPage);
  const uint64_t memory = second.SealedMemory(6 * kPage);
  const uint64_t mr = second.CreateMr();
  ExpectFigures(second.Register(RegisterRequest(mr, {MdlEntry(memory, 0, 6 * kPage, kBase)}, 6 * kPage)),
                ErrorReason::QUOTA_PINNED_BYTES, 61440, 10 * kPage, 6 * kPage);
  // A refusal by the node leaves nothing charged to the session.
  EXPECT_EQ(second.Use("pinned_bytes").used(), 0u);
  second.RegisterWhole(mr, memory, 5 * kPage);
}

TEST_F(Quotas, SessionsOfAUid) {
  TestSession first(daemon());
  TestSession second(daemon());
  {
    TestSession third(daemon());
    RawClient fourth(daemon().rpc_socket());
    ExpectFigures(fourth.Call(&SessionStub::OpenSession, {}), ErrorReason::QUOTA_SESSIONS, 3, 3, 1);
    ExpectOk(third.CloseSession());
    // The same connection may try again.
    ExpectOk(fourth.Call(&SessionStub::OpenSession, {}));
  }
}

TEST_F(Quotas, AdaptersHaveALimit) {
  TestSession session(daemon());
  CallResult<v1::OpenAdapterResponse> opened;
  uint64_t count = 0;
  for (; opened.ok() && count < kManyObjects; ++count) {
    opened = session.Call(&AdapterStub::OpenAdapter, {});
  }
  ExpectFigures(opened, ErrorReason::QUOTA_ADAPTERS, count - 1, count - 1, 1);
}

TEST_F(Quotas, ProtectionDomainsHaveALimit) {
  TestSession session(daemon());
  v1::CreatePdRequest request;
  request.set_adapter_id(session.adapter_id());
  CallResult<v1::CreatePdResponse> created;
  uint64_t count = 0;
  for (; created.ok() && count < kManyObjects; ++count) {
    created = session.Call(&MemoryStub::CreatePd, request);
  }
  ExpectFigures(created, ErrorReason::QUOTA_PROTECTION_DOMAINS, count - 1, count - 1, 1);
}

class PendingQuota : public DaemonTest {
 protected:
  PendingQuota()
      : DaemonTest({"--max_pending_requests_per_session=2", "--pending_threshold_bytes=4096",
                    ProviderFlag("register_delay_us", kHandfulOfCalls)}) {}
};

// A request is pending until its completion has been fetched: a client that does not listen cannot pile them up.
TEST_F(PendingQuota, CountsUntilTheCompletionIsFetched) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  v1::RegisterMrRequest request = RegisterRequest(0, {MdlEntry(memory, 0, kPage, kBase)}, kPage);
  request.set_allow_pending(true);
  std::vector<uint64_t> regions;
  for (uint64_t context = 1; context <= 2; ++context) {
    regions.push_back(session.CreateMr());
    request.set_mr_id(regions.back());
    request.set_request_context(context);
    EXPECT_EQ(session.Register(request).response.ntstatus(), kStatusPending);
  }
  request.set_mr_id(session.CreateMr());
  ExpectFigures(session.Register(request), ErrorReason::QUOTA_PENDING_REQUESTS, 2, 2, 1);
  EXPECT_TRUE(Eventually([&] { return session.LocalToken(regions[0]).ok() && session.LocalToken(regions[1]).ok(); }));
  ExpectFigures(session.Register(request), ErrorReason::QUOTA_PENDING_REQUESTS, 2, 2, 1);
  EventReader events(session);
  events.NextCompletion();
  events.NextCompletion();
  EXPECT_TRUE(Eventually([&] { return session.Use("pending_requests").used() == 0; }));
  EXPECT_EQ(session.Register(request).response.ntstatus(), kStatusPending);
  events.NextCompletion();
}

}  // namespace
}  // namespace rnicd::test
