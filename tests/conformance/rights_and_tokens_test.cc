// Group B of the edge cases, second half: rights, resources, tokens and deregistration on the control path: what is
// accepted, which rights the operator sees granted, and which tokens can be read. traffic_test.cc tests the resulting
// traffic.
#include <optional>

#include "tests/conformance/ndk_conformance.h"
#include "tests/support/admin_client.h"
#include "tests/support/process/held_card.h"

namespace rnicd::test {
namespace {

constexpr uint32_t kLocalWrite = v1::MR_FLAG_ALLOW_LOCAL_WRITE;
constexpr uint32_t kRemoteRead = v1::MR_FLAG_ALLOW_REMOTE_READ;
constexpr uint32_t kRemoteWrite = v1::MR_FLAG_ALLOW_REMOTE_WRITE;
constexpr uint32_t kReadSink = v1::MR_FLAG_RDMA_READ_SINK;
constexpr uint32_t kReadSinkNotRequired = 0x2;

// Registers a page with these flags and returns the rights that the operator sees; nullopt if the region is not listed.
std::optional<uint32_t> GrantedFlags(DaemonProcess& daemon, TestSession& session, uint32_t flags) {
  const uint64_t mr = session.CreateMr();
  session.RegisterWhole(mr, session.SealedMemory(kPage), kPage, flags);
  const std::optional<v1::RegionInfo> region = AdminRegion(daemon, mr);
  return region.has_value() ? std::optional<uint32_t>(region->flags()) : std::nullopt;
}

uint32_t AdapterFlags(TestSession& session) {
  v1::QueryAdapterInfoRequest query;
  query.set_adapter_id(session.adapter_id());
  const auto info = session.Call(&AdapterStub::QueryAdapterInfo, query);
  ExpectOk(info);
  return info.response.info().adapter_flags();
}

// Row 25. NDK: flags 0 grant local read and nothing else.
TEST_P(NdkConformance, Case025_NoFlagsGrantNothingMore) {
  TestSession session(daemon());
  EXPECT_EQ(GrantedFlags(daemon(), session, 0), 0u);
}

// Row 26. NDK: remote write is two bits, one of which is local write.
TEST_P(NdkConformance, Case026_RemoteWriteGrantsLocalWrite) {
  TestSession session(daemon());
  const std::optional<uint32_t> granted = GrantedFlags(daemon(), session, kRemoteWrite);
  ASSERT_TRUE(granted.has_value());
  EXPECT_EQ(*granted & kRemoteWrite, kRemoteWrite);
  EXPECT_EQ(*granted & kLocalWrite, kLocalWrite);
  EXPECT_EQ(*granted & kRemoteRead, 0u);
}

// Row 27. NDK is silent on the upper bit of remote write alone, and on bits it does not define. Recommended:
// STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case027_HalfOfRemoteWriteIsRefused) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  v1::RegisterMrRequest request = RegisterRequest(session.CreateMr(), {MdlEntry(memory, 0, kPage, kBase)}, kPage);
  for (const uint32_t flags : {0x4u, 0x6u, 0xcu}) {
    request.set_flags(flags);
    ExpectRefused(session.Register(request), ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE, "flags");
  }
}

TEST_P(NdkConformance, Case027_UnknownFlagIsRefused) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  v1::RegisterMrRequest request = RegisterRequest(session.CreateMr(), {MdlEntry(memory, 0, kPage, kBase)}, kPage);
  for (const uint32_t flags : {0x10u, 0x15u, 0x100u, 0x80000000u, 0xffffffffu}) {
    request.set_flags(flags);
    ExpectRefused(session.Register(request), ErrorReason::FLAGS_UNKNOWN, "flags");
  }
}

// Row 28. NDK: where the adapter needs no right for read sinks, asking for it must do no harm. Where it needs one,
// asking is what it is for; so it is accepted on every adapter.
TEST_P(NdkConformance, Case028_ReadSinkIsAlwaysAccepted) {
  TestSession session(daemon());
  for (const uint32_t flags : {kReadSink, kReadSink | kLocalWrite, kReadSink | kRemoteWrite | kRemoteRead}) {
    const std::optional<uint32_t> granted = GrantedFlags(daemon(), session, flags);
    ASSERT_TRUE(granted.has_value());
    EXPECT_EQ(*granted & ~kReadSink, flags & ~kReadSink);
    EXPECT_TRUE((*granted & kReadSink) != 0 || (AdapterFlags(session) & kReadSinkNotRequired) != 0);
  }
}

// Row 30. NDK: STATUS_INSUFFICIENT_RESOURCES at once, and the region is as it was before. First the device's limit.
TEST_P(NdkConformance, Case030_DeviceIsOutOfResourcesAtOnce) {
  TestSession session(tight_daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  for (uint64_t count = 0; count < kTightDeviceRegions; ++count) {
    session.RegisterWhole(session.CreateMr(), memory, kPage);
  }
  ExpectRefused(session.Register(RegisterRequest(mr, {MdlEntry(memory, 0, kPage, kBase)}, kPage)),
                ErrorReason::DEVICE_OUT_OF_RESOURCES);
  ExpectRefused(session.LocalToken(mr), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  EXPECT_EQ(session.Use("registered_bytes").used(), kTightDeviceRegions * kPage);
}

// Row 30 again, with the limit on pinned bytes. A page that is registered already is pinned already.
TEST_P(NdkConformance, Case030_PinnedBytesAreUsedUpAtOnce) {
  TestSession session(tight_daemon());
  const uint64_t memory = session.SealedMemory(kTightPinnedBytes);
  session.RegisterWhole(session.CreateMr(), memory, kTightPinnedBytes);
  const uint64_t mr = session.CreateMr();
  const uint64_t other = session.SealedMemory(kPage);
  const auto refused = session.Register(RegisterRequest(mr, {MdlEntry(other, 0, kPage, kBase)}, kPage));
  ExpectRefused(refused, ErrorReason::QUOTA_PINNED_BYTES);
  EXPECT_EQ(refused.detail.limit(), kTightPinnedBytes);
  EXPECT_EQ(refused.detail.used(), kTightPinnedBytes);
  EXPECT_EQ(refused.detail.requested(), kPage);
  ExpectRefused(session.LocalToken(mr), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  session.RegisterWhole(mr, memory, kPage);
}

// Row 30, later: the request pends, and its completion carries the failure. The region is as it was before.
TEST_P(NdkConformance, Case030_OutOfResourcesInTheCompletion) {
  TestSession session(tight_daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t occupant = session.CreateMr();
  session.RegisterWhole(occupant, memory, kPage);
  for (uint64_t count = 1; count < kTightDeviceRegions; ++count) {
    session.RegisterWhole(session.CreateMr(), memory, kPage);
  }
  const uint64_t mr = session.CreateMr();
  RegisterPending(session, mr, memory, kPage, 7030);
  const v1::RequestCompleted completed = events.NextCompletion();
  EXPECT_EQ(completed.request_context(), 7030u);
  EXPECT_EQ(completed.ntstatus(), static_cast<uint32_t>(NtStatus::kInsufficientResources));
  ExpectRefused(completed.error(), ErrorReason::DEVICE_OUT_OF_RESOURCES);
  EXPECT_FALSE(completed.has_registration());
  ExpectRefused(session.LocalToken(mr), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  EXPECT_EQ(session.Use("registered_bytes").used(), kTightDeviceRegions * kPage);
  ExpectOk(session.Deregister(occupant));
  session.RegisterWhole(mr, memory, kPage);
  EXPECT_TRUE(CompletionsUntilEnd(session, events).empty());
}

// Row 31. NDK: after a registration both getters work. Two regions never share a token.
TEST_P(NdkConformance, Case031_BothTokensCanBeRead) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t first = session.CreateMr();
  const uint64_t second = session.CreateMr();
  ExpectRefused(session.LocalToken(first), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  ExpectRefused(session.RemoteToken(first), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  const v1::Registration one = session.RegisterWhole(first, memory, kPage, kRemoteRead);
  const v1::Registration two = session.RegisterWhole(second, memory, kPage, kRemoteRead);
  EXPECT_EQ(session.LocalToken(first).response.local_token(), one.local_token());
  EXPECT_EQ(session.RemoteToken(first).response.remote_token(), one.remote_token());
  EXPECT_NE(one.remote_token(), 0u);
  EXPECT_NE(one.local_token(), two.local_token());
  EXPECT_NE(one.remote_token(), two.remote_token());
}

// Row 32. NDK: deregistering succeeds or pends, and both tokens stop working. The device holds no key afterwards.
TEST_P(NdkConformance, Case032_DeregisterKillsBothTokens) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  session.RegisterWhole(mr, memory, kPage);
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 1u);
  ExpectOk(session.Deregister(mr));
  ExpectRefused(session.LocalToken(mr), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  ExpectRefused(session.RemoteToken(mr), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 0u);
  EXPECT_EQ(AdminRegion(daemon(), mr).value_or(v1::RegionInfo()).state(), "created");
}

// Row 32, where it pends: one completion, and the tokens are dead by then.
TEST_P(NdkConformance, Case032_PendingDeregisterKillsBothTokens) {
  TestSession session(slow_daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  session.RegisterWhole(mr, memory, kPage);
  const auto answer = session.Deregister(mr, true, 7032);
  ExpectOk(answer);
  EXPECT_EQ(answer.response.ntstatus(), kStatusPending);
  const v1::RequestCompleted completed = events.NextCompletion();
  EXPECT_EQ(completed.kind(), v1::REQUEST_KIND_DEREGISTER_MR);
  EXPECT_EQ(completed.request_context(), 7032u);
  EXPECT_EQ(completed.object_id(), mr);
  EXPECT_EQ(completed.ntstatus(), kStatusSuccess);
  ExpectRefused(session.RemoteToken(mr), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  EXPECT_EQ(AdminStatus(slow_daemon()).device_regions(), 0u);
  EXPECT_TRUE(CompletionsUntilEnd(session, events).empty());
}

// Row 33. NDK wants a region that RegisterMr registered and names no code. Recommended: STATUS_INVALID_DEVICE_STATE.
TEST_P(NdkConformance, Case033_DeregisterOfWhatIsNotRegisteredIsRefused) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  ExpectRefused(session.Deregister(mr), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  session.RegisterWhole(mr, memory, kPage);
  ExpectOk(session.Deregister(mr));
  ExpectRefused(session.Deregister(mr), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  ExpectRefused(session.Deregister(session.CreateMr(true)), ErrorReason::REGION_WRONG_KIND, "mr_id");
}

// Row 35. NDK is silent on transfers in flight. Recommended: pages are never freed under one. They cannot go before the
// deregistration is complete.
TEST_P(NdkConformance, Case035_MemoryStaysUntilDeregistered) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  session.RegisterWhole(mr, memory, kPage);
  ExpectRefused(session.Release(memory), ErrorReason::MEMORY_IN_USE, "memory_id");
  ExpectOk(session.Deregister(mr));
  ExpectOk(session.Release(memory));
}

// Row 35, while a registration is pending: the pages it is about cannot go either.
TEST_P(NdkConformance, Case035_MemoryStaysWhileARegistrationIsPending) {
  TestSession session(slow_daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  HeldRegistrations held;
  RegisterPending(session, session.CreateMr(), memory, kPage, 1);
  ExpectRefused(session.Release(memory), ErrorReason::MEMORY_IN_USE, "memory_id");
  held.LetGo();
  EXPECT_EQ(events.NextCompletion().ntstatus(), kStatusSuccess);
}

// Row 36. NDK: a deregistered region can be registered again, and a stale token must not reach the new buffer: the
// new tokens are others.
TEST_P(NdkConformance, Case036_RegisteringAgainGivesOtherTokens) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(2 * kPage);
  const uint64_t mr = session.CreateMr();
  const v1::Registration first = session.RegisterWhole(mr, memory, kPage, kRemoteWrite);
  ExpectOk(session.Deregister(mr));
  const v1::Registration second = session.RegisterWhole(mr, memory, 2 * kPage, kRemoteRead);
  EXPECT_EQ(second.length(), 2 * kPage);
  EXPECT_NE(second.local_token(), first.local_token());
  EXPECT_NE(second.remote_token(), first.remote_token());
  EXPECT_EQ(session.RemoteToken(mr).response.remote_token(), second.remote_token());
  EXPECT_EQ(AdminRegion(daemon(), mr).value_or(v1::RegionInfo()).flags(), kRemoteRead);
}

}  // namespace
}  // namespace rnicd::test
