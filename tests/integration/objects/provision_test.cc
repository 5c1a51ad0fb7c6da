// ProvisionMemory: from attached memory to registered regions in one call.
#include <sys/mman.h>

#include <future>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/process/held_card.h"
#include "tests/support/process/memory_file.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

class Provisioning : public DaemonTest {
 protected:
  explicit Provisioning(const std::vector<std::string>& flags = {}) : DaemonTest(flags) {}

  // `count` ranges of `bytes` each, one behind the other.
  static v1::ProvisionMemoryRequest Request(TestSession& session, uint64_t memory_id, uint64_t count, uint64_t bytes) {
    v1::ProvisionMemoryRequest request;
    request.set_memory_id(memory_id);
    request.set_pd_id(session.pd_id());
    for (uint64_t index = 0; index < count; ++index) {
      *request.add_items() = ProvisionRange(index * bytes, bytes);
    }
    return request;
  }
};

TEST_F(Provisioning, OneThousandTwoHundredAndSixtyFiveRegionsInOneCall) {
  constexpr int kCount = 1265;
  constexpr uint64_t kRegionBytes = 40 << 10;
  TestSession session(daemon());
  const uint64_t memory_id = session.AttachedMemory(kCount * kRegionBytes);
  const auto provisioned =
      session.Call(&MemoryStub::ProvisionMemory, Request(session, memory_id, kCount, kRegionBytes));
  ExpectOk(provisioned);
  EXPECT_EQ(provisioned.response.size(), kCount * kRegionBytes);
  EXPECT_EQ(provisioned.response.page_size(), v1::PAGE_SIZE_4KIB);
  ASSERT_EQ(provisioned.response.outcomes_size(), kCount);
  std::set<uint64_t> ids;
  std::set<uint32_t> local_tokens;
  std::set<uint32_t> remote_tokens;
  for (const v1::ProvisionOutcome& outcome : provisioned.response.outcomes()) {
    ASSERT_FALSE(outcome.has_error()) << outcome.ShortDebugString();
    ids.insert(outcome.mr_id());
    local_tokens.insert(outcome.local_token());
    remote_tokens.insert(outcome.remote_token());
  }
  EXPECT_EQ(ids.size(), static_cast<size_t>(kCount));
  EXPECT_EQ(local_tokens.size(), static_cast<size_t>(kCount));
  EXPECT_EQ(remote_tokens.size(), static_cast<size_t>(kCount));
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), static_cast<uint64_t>(kCount));
  EXPECT_EQ(session.Use("pinned_bytes").used(), kCount * kRegionBytes);
}

TEST_F(Provisioning, ARegionIsThatOfRegisterMr) {
  TestSession session(daemon());
  v1::ProvisionMemoryRequest request = Request(session, session.AttachedMemory(4 * kPage), 1, kPage);
  v1::ProvisionRange& range = *request.mutable_items(0);
  range.set_byte_offset(kPage + 8);
  range.set_virtual_address(kBase + 8);
  range.set_length(2 * kPage);
  range.set_flags(v1::MR_FLAG_ALLOW_REMOTE_READ);
  const auto provisioned = session.Call(&MemoryStub::ProvisionMemory, request);
  ExpectOk(provisioned);
  ASSERT_EQ(provisioned.response.outcomes_size(), 1);
  const v1::ProvisionOutcome& region = provisioned.response.outcomes(0);
  EXPECT_EQ(session.LocalToken(region.mr_id()).response.local_token(), region.local_token());
  EXPECT_EQ(session.RemoteToken(region.mr_id()).response.remote_token(), region.remote_token());
  const v1::RegionInfo info = AdminRegion(daemon(), region.mr_id()).value_or(v1::RegionInfo());
  EXPECT_EQ(info.state(), "registered");
  EXPECT_EQ(info.base_virtual_address(), kBase + 8);
  EXPECT_EQ(info.length(), 2 * kPage);
  ExpectRefused(session.Release(request.memory_id()), ErrorReason::MEMORY_IN_USE, "memory_id");
  ExpectOk(session.Deregister(region.mr_id()));
  ExpectOk(session.CloseMr(region.mr_id()));
}

TEST_F(Provisioning, SealsAnImportToo) {
  TestSession session(daemon());
  const UniqueFd file = MakeSealableMemfd(4 * kPage);
  const v1::ImportMemoryResponse announced = session.Import(4 * kPage);
  const v1::ProvisionMemoryRequest request = Request(session, announced.memory_id(), 4, kPage);
  ExpectRefused(session.Call(&MemoryStub::ProvisionMemory, request), ErrorReason::MEMORY_NOT_ATTACHED, "memory_id");
  ExpectFdOk(SendFd(daemon().fd_socket(), announced.fd_ticket(), file.get()));
  const auto provisioned = session.Call(&MemoryStub::ProvisionMemory, request);
  ExpectOk(provisioned);
  EXPECT_EQ(session.Use("regions").used(), 4u);
  EXPECT_TRUE(SharedMapping(file.get(), 4 * kPage).bytes().empty()) << "the file is not sealed";
  ExpectRefused(session.Seal(announced.memory_id()), ErrorReason::MEMORY_ALREADY_SEALED, "memory_id");
  ExpectOk(session.Call(&MemoryStub::ProvisionMemory, request));
  EXPECT_EQ(session.Use("regions").used(), 8u);
}

class FewRegions : public Provisioning {
 protected:
  FewRegions() : Provisioning({LimitsFlag("session_limits { regions: 2 }")}) {}
};

TEST_F(FewRegions, ItemsAboveTheQuotaAreRefusedOneByOne) {
  TestSession session(daemon());
  const auto provisioned =
      session.Call(&MemoryStub::ProvisionMemory, Request(session, session.AttachedMemory(4 * kPage), 4, kPage));
  ExpectOk(provisioned);
  ASSERT_EQ(provisioned.response.outcomes_size(), 4);
  EXPECT_FALSE(provisioned.response.outcomes(1).has_error());
  ExpectRefused(provisioned.response.outcomes(2).error(), ErrorReason::QUOTA_REGIONS, "items[2]");
  ExpectRefused(provisioned.response.outcomes(3).error(), ErrorReason::QUOTA_REGIONS, "items[3]");
  EXPECT_EQ(session.Use("registered_bytes").used(), 2 * kPage);
}

class HeldProvisioning : public Provisioning {
 protected:
  HeldProvisioning() : Provisioning({"--pending_threshold_bytes=4096", HoldableRegistrationsFlag()}) {}

  // Provisions four pages, waits until the card has the request, and cancels it.
  void GiveUp(TestSession& session) {
    grpc::ClientContext context;
    const v1::ProvisionMemoryRequest request = Request(session, session.SealedMemory(4 * kPage), 4, kPage);
    auto provisioned = std::async(std::launch::async, [&] {
      v1::ProvisionMemoryResponse response;
      return session.Call("/rnicd.v1.MemoryService/ProvisionMemory", request, &response, context);
    });
    EXPECT_TRUE(Eventually([&] { return session.Use("pending_requests").used() > 0; }));
    context.TryCancel();
    EXPECT_EQ(provisioned.get().code, grpc::StatusCode::CANCELLED);
  }
};

TEST_F(HeldProvisioning, ASessionThatIsClosedMeanwhileTakesEverythingBack) {
  TestSession session(daemon());
  RawClient other(daemon().rpc_socket());
  v1::JoinSessionRequest join;
  join.set_session_id(session.session_id());
  ExpectOk(other.Call(&SessionStub::JoinSession, join));
  HeldRegistrations held;
  GiveUp(session);
  auto closed = std::async(std::launch::async, [&] { return other.Call(&SessionStub::CloseSession, {}); });
  EXPECT_TRUE(Eventually([&] { return !session.Call(&SessionStub::GetSession, {}).ok(); }));
  held.LetGo();
  ExpectOk(closed.get());
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 0u);
}

}  // namespace
}  // namespace rnicd::test
