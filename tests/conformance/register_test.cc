// Group B of the edge cases, first half: the range of a registration, and refused registrations.
#include <limits>
#include <string>

#include "tests/conformance/ndk_conformance.h"
#include "tests/support/admin_client.h"
#include "tests/support/process/held_card.h"

namespace rnicd::test {
namespace {

// Row 15. NDK: a chain of several descriptors that follow one another is one region.
TEST_P(NdkConformance, Case015_ContiguousChainIsOneRegion) {
  TestSession session(daemon());
  const uint64_t first = session.SealedMemory(4 * kPage);
  const uint64_t second = session.SealedMemory(2 * kPage);
  const uint64_t mr = session.CreateMr();
  const auto registered = session.Register(
      RegisterRequest(mr,
                      {MdlEntry(first, 0, kPage, kBase), MdlEntry(first, 2 * kPage, 2 * kPage, kBase + kPage),
                       MdlEntry(second, kPage, kPage, kBase + 3 * kPage)},
                      4 * kPage));
  ExpectOk(registered);
  EXPECT_EQ(registered.response.registration().base_virtual_address(), kBase);
  EXPECT_EQ(registered.response.registration().length(), 4 * kPage);
  const std::optional<v1::RegionInfo> region = AdminRegion(daemon(), mr);
  ASSERT_TRUE(region.has_value());
  EXPECT_EQ(region->state(), "registered");
  EXPECT_EQ(region->base_virtual_address(), kBase);
  EXPECT_EQ(region->length(), 4 * kPage);
  EXPECT_EQ(region->pages(), 4u);
  EXPECT_EQ(AdminRegions(daemon()).size(), 1u);
}

// Row 16. NDK: the chain must be virtually contiguous over Length; otherwise STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case016_GapInsideLengthIsRefused) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(4 * kPage);
  const uint64_t mr = session.CreateMr();
  const std::vector<v1::MdlEntry> chain = {MdlEntry(memory, 0, kPage, kBase),
                                           MdlEntry(memory, kPage, kPage, kBase + kPage),
                                           MdlEntry(memory, 2 * kPage, kPage, kBase + 3 * kPage)};
  ExpectRefused(session.Register(RegisterRequest(mr, chain, 3 * kPage)), ErrorReason::MDL_CHAIN_GAP,
                "mdl_chain[2].virtual_address");
  ExpectRefused(session.Register(RegisterRequest(mr, chain, 2 * kPage + 1)), ErrorReason::MDL_CHAIN_GAP,
                "mdl_chain[2].virtual_address");
  ExpectRefused(session.LocalToken(mr), ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  EXPECT_EQ(session.Use("pinned_bytes").used(), 0u);
}

// Row 16, second half: contiguity is wanted up to Length and no further.
TEST_P(NdkConformance, Case016_GapBeyondLengthIsAccepted) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(4 * kPage);
  const uint64_t mr = session.CreateMr();
  const auto registered = session.Register(RegisterRequest(
      mr, {MdlEntry(memory, 0, 2 * kPage, kBase), MdlEntry(memory, 2 * kPage, kPage, kBase + 8 * kPage)}, 2 * kPage));
  ExpectOk(registered);
  EXPECT_EQ(registered.response.registration().length(), 2 * kPage);
}

// Row 17. NDK: with Length below the chain total only the prefix can be reached. The region is also reported, charged
// and listed with the prefix only. traffic_test.cc shows what a peer reaches.
TEST_P(NdkConformance, Case017_OnlyThePrefixIsRegistered) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(4 * kPage);
  const uint64_t mr = session.CreateMr();
  const auto registered = session.Register(RegisterRequest(mr, {MdlEntry(memory, 0, 4 * kPage, kBase)}, kPage + 100));
  ExpectOk(registered);
  EXPECT_EQ(registered.response.registration().length(), kPage + 100);
  EXPECT_EQ(session.Use("pinned_bytes").used(), 2 * kPage);
  const std::optional<v1::RegionInfo> region = AdminRegion(daemon(), mr);
  ASSERT_TRUE(region.has_value());
  EXPECT_EQ(region->length(), kPage + 100);
  EXPECT_EQ(region->pages(), 2u);
}

// Row 18. NDK demands Length within the chain and names no code. Recommended: STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case018_LengthAboveTheChainIsRefused) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(2 * kPage);
  const uint64_t mr = session.CreateMr();
  const std::vector<v1::MdlEntry> chain = {MdlEntry(memory, 0, kPage, kBase)};
  ExpectRefused(session.Register(RegisterRequest(mr, chain, kPage + 1)), ErrorReason::LENGTH_ABOVE_CHAIN, "length");
  ExpectRefused(session.Register(RegisterRequest(mr, chain, std::numeric_limits<uint64_t>::max())),
                ErrorReason::LENGTH_ABOVE_CHAIN, "length");
}

// Row 19. NDK is silent on Length 0. Recommended: STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case019_LengthZeroIsRefused) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  ExpectRefused(session.Register(RegisterRequest(mr, {MdlEntry(memory, 0, kPage, kBase)}, 0)), ErrorReason::LENGTH_ZERO,
                "length");
}

// Row 20. NDK: MaxRegistrationSize bytes can be registered at once; one more cannot. Recommended code:
// STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case020_AdapterMaximumIsTheLastThatWorks) {
  TestSession session(tight_daemon());
  v1::QueryAdapterInfoRequest query;
  query.set_adapter_id(session.adapter_id());
  const auto info = session.Call(&AdapterStub::QueryAdapterInfo, query);
  ExpectOk(info);
  const uint64_t maximum = info.response.info().max_registration_size();
  EXPECT_EQ(maximum, kTightRegistrationBytes);
  const uint64_t memory = session.SealedMemory(maximum + kPage);
  const uint64_t mr = session.CreateMr();
  const std::vector<v1::MdlEntry> chain = {MdlEntry(memory, 0, maximum + kPage, kBase)};
  ExpectRefused(session.Register(RegisterRequest(mr, chain, maximum + 1)), ErrorReason::LENGTH_ABOVE_ADAPTER_LIMIT,
                "length");
  ExpectOk(session.Register(RegisterRequest(mr, chain, maximum)));
}

// Row 21. NDK: the address is an index. It need not be aligned, nor be memory at all, and comes back unchanged.
// traffic_test.cc shows peers use it.
TEST_P(NdkConformance, Case021_AddressIsAnIndexOnly) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(2 * kPage);
  // Unaligned; the first page of every process, which cannot be mapped; an address that no processor accepts.
  for (const uint64_t base : {uint64_t{0x7000'0000'0123}, uint64_t{0x0fff}, uint64_t{0x8000'dead'beef'0001}}) {
    const uint64_t mr = session.CreateMr();
    const auto registered = session.Register(RegisterRequest(mr, {MdlEntry(memory, base % kPage, 100, base)}, 100));
    ExpectOk(registered);
    EXPECT_EQ(registered.response.registration().base_virtual_address(), base);
    EXPECT_EQ(AdminRegion(daemon(), mr).value_or(v1::RegionInfo()).base_virtual_address(), base);
  }
}

// Row 22. NDK does not support zero-based addresses and names no code. Recommended: STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case022_AddressZeroIsRefused) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  ExpectRefused(session.Register(RegisterRequest(mr, {MdlEntry(memory, 0, kPage, 0)}, kPage)),
                ErrorReason::MDL_ADDRESS_ZERO, "mdl_chain[0].virtual_address");
}

// Row 23. NDK keeps the two kinds of region apart and names no code. Recommended: STATUS_INVALID_DEVICE_STATE.
TEST_P(NdkConformance, Case023_FastKindCannotBeRegistered) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr(true);
  ExpectRefused(session.Register(RegisterRequest(mr, {MdlEntry(memory, 0, kPage, kBase)}, kPage)),
                ErrorReason::REGION_WRONG_KIND, "mr_id");
  EXPECT_EQ(session.Use("pinned_bytes").used(), 0u);
}

// Row 24. NDK is silent on a second registration. Recommended: STATUS_INVALID_DEVICE_STATE, and the first one stays.
TEST_P(NdkConformance, Case024_SecondRegistrationIsRefused) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(2 * kPage);
  const uint64_t mr = session.CreateMr();
  const v1::Registration first = session.RegisterWhole(mr, memory, kPage);
  ExpectRefused(session.Register(RegisterRequest(mr, {MdlEntry(memory, kPage, kPage, kBase)}, kPage)),
                ErrorReason::REGION_ALREADY_REGISTERED, "mr_id");
  EXPECT_EQ(session.LocalToken(mr).response.local_token(), first.local_token());
  EXPECT_EQ(session.Use("pinned_bytes").used(), kPage);
}

// Row 24, while the first is still pending.
TEST_P(NdkConformance, Case024_RegistrationDuringAnotherIsRefused) {
  TestSession session(slow_daemon());
  EventReader events(session);
  const uint64_t memory = session.SealedMemory(kPage);
  const uint64_t mr = session.CreateMr();
  HeldRegistrations held;
  RegisterPending(session, mr, memory, kPage, 1);
  ExpectRefused(session.Register(RegisterRequest(mr, {MdlEntry(memory, 0, kPage, kBase)}, kPage)),
                ErrorReason::REGION_BUSY, "mr_id");
  held.LetGo();
  EXPECT_EQ(events.NextCompletion().ntstatus(), kStatusSuccess);
}

}  // namespace
}  // namespace rnicd::test
