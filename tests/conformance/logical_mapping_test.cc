// Group G of the edge cases, second half: logical address mappings. The tests verify an entry by transferring its
// page's bytes with the privileged token.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/peer_access.h"

namespace rnicd::test {
namespace {

// Bytes of NDK_LOGICAL_ADDRESS_MAPPING before its array, and of each entry.
constexpr uint64_t kLamHead = 16;
constexpr uint64_t kLamEntry = 8;

CallResult<v1::BuildLamResponse> Build(TestSession& session, const std::vector<v1::MdlEntry>& chain, uint64_t length,
                                       std::optional<uint64_t> lam_size = std::nullopt) {
  v1::BuildLamRequest request;
  request.set_adapter_id(session.adapter_id());
  request.mutable_mdl_chain()->Assign(chain.begin(), chain.end());
  request.set_length(length);
  if (lam_size.has_value()) {
    request.set_lam_size(*lam_size);
  }
  return session.Call(&MemoryStub::BuildLam, request);
}

void ExpectNothingMapped(TestSession& session) {
  EXPECT_EQ(session.Use("logical_mappings").used(), 0u);
  EXPECT_EQ(session.Use("pinned_bytes").used(), 0u);
}

// Row 100. NDK: STATUS_BUFFER_TOO_SMALL, the size that is needed, and nothing is mapped. Size 0 is how a caller asks.
TEST_P(NdkConformance, Case100_TooSmallBufferIsToldTheSize) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(4 * kPage);
  // Covers the last byte of one page, a whole page, and the first byte of a third.
  const std::vector<v1::MdlEntry> chain = {MdlEntry(memory, kPage - 1, kPage + 2, kBase + kPage - 1)};
  constexpr uint64_t kNeeded = kLamHead + 3 * kLamEntry;
  for (const uint64_t lam_size : {uint64_t{0}, uint64_t{1}, kLamHead, kNeeded - 1}) {
    const auto refused = Build(session, chain, kPage + 2, lam_size);
    ExpectRefused(refused, ErrorReason::BUFFER_TOO_SMALL, "lam_size");
    EXPECT_EQ(refused.detail.requested(), kNeeded);
    EXPECT_EQ(refused.detail.limit(), lam_size);
  }
  ExpectNothingMapped(session);
  const auto built = Build(session, chain, kPage + 2, kNeeded);
  ExpectOk(built);
  EXPECT_EQ(built.response.adapter_page_array_size(), 3);
  EXPECT_EQ(session.Use("logical_mappings").used(), 1u);
  EXPECT_EQ(session.Use("pinned_bytes").used(), 3 * kPage);
}

// Row 101. NDK: the mapping has the pages that the range touches, and its first byte offset is that of the range.
// Wherever a single byte lies, that is one page.
TEST_P(NdkConformance, Case101_OneByteIsOnePage) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  const uint32_t privileged = PrivilegedToken(pair.far_session);
  TestMemory memory(pair.far_session, 2 * kPage);
  memory.SetText(0, "first");
  memory.SetText(kPage - 1, "last");
  for (const uint64_t offset : {uint64_t{0}, uint64_t{3}, kPage - 1}) {
    const auto built = Build(pair.far_session, {MdlEntry(memory.id(), offset, 1, kBase + offset)}, 1);
    ExpectOk(built);
    ASSERT_EQ(built.response.adapter_page_array_size(), 1);
    EXPECT_EQ(built.response.fbo(), offset);
    const uint64_t address = built.response.adapter_page_array(0) + built.response.fbo();
    ExpectCompletion(probe.OwnerWrites({Sge(address, 1, privileged)}), NtStatus::kSuccess);
    EXPECT_EQ(probe.peer_memory().Text(0, 1), memory.Text(offset, 1));
  }
}

// Row 101, a page's worth of bytes from the last byte of a page on: two pages.
TEST_P(NdkConformance, Case101_PageAcrossASeamIsTwoPages) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  const uint32_t privileged = PrivilegedToken(pair.far_session);
  TestMemory memory(pair.far_session, 2 * kPage);
  memory.Fill(std::byte{'p'});
  memory.SetText(kPage - 2, "<>");
  memory.SetText(2 * kPage - 2, "><");
  const auto built = Build(pair.far_session, {MdlEntry(memory.id(), kPage - 1, kPage, kBase + kPage - 1)}, kPage);
  ExpectOk(built);
  EXPECT_EQ(built.response.fbo(), kPage - 1);
  ASSERT_EQ(built.response.adapter_page_array_size(), 2);
  const v1::Sge last_of_the_first = Sge(built.response.adapter_page_array(0) + kPage - 1, 1, privileged);
  const v1::Sge most_of_the_second = Sge(built.response.adapter_page_array(1), kPage - 1, privileged);
  ExpectCompletion(probe.OwnerWrites({last_of_the_first, most_of_the_second}), NtStatus::kSuccess);
  EXPECT_EQ(probe.peer_memory().Text(0, kPage), memory.Text(kPage - 1, kPage));
}

// Row 101 for a chain: the pages come in the order of the chain, from whatever memory they are.
TEST_P(NdkConformance, Case101_PagesComeInTheOrderOfTheChain) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  const uint32_t privileged = PrivilegedToken(pair.far_session);
  TestMemory one(pair.far_session, 2 * kPage);
  TestMemory other(pair.far_session, kPage);
  one.SetText(0, "one:0");
  one.SetText(kPage, "one:1");
  other.SetText(0, "other");
  const auto built = Build(pair.far_session,
                           {MdlEntry(one.id(), kPage, kPage, kBase), MdlEntry(other.id(), 0, kPage, kBase + kPage),
                            MdlEntry(one.id(), 0, kPage, kBase + 2 * kPage)},
                           3 * kPage);
  ExpectOk(built);
  ASSERT_EQ(built.response.adapter_page_array_size(), 3);
  std::vector<v1::Sge> sges;
  for (const uint64_t page : built.response.adapter_page_array()) {
    sges.push_back(Sge(page, 5, privileged));
  }
  ExpectCompletion(probe.OwnerWrites(sges), NtStatus::kSuccess);
  EXPECT_EQ(probe.peer_memory().Text(0, 15), "one:1otherone:0");
}

// Row 102. NDK: the chain must be virtually contiguous over Length; otherwise STATUS_INVALID_PARAMETER. Beyond Length
// it need not be.
TEST_P(NdkConformance, Case102_GapInsideLengthIsRefused) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(4 * kPage);
  const std::vector<v1::MdlEntry> chain = {MdlEntry(memory, 0, kPage, kBase),
                                           MdlEntry(memory, kPage, kPage, kBase + 2 * kPage)};
  for (const uint64_t length : {2 * kPage, kPage + 1}) {
    ExpectRefused(Build(session, chain, length), ErrorReason::MDL_CHAIN_GAP, "mdl_chain[1].virtual_address");
  }
  ExpectNothingMapped(session);
  const auto built = Build(session, chain, kPage);
  ExpectOk(built);
  EXPECT_EQ(built.response.adapter_page_array_size(), 1);
}

// Row 103. NDK: what was mapped before the failure is undone. The failure comes with the chain's third entry here.
TEST_P(NdkConformance, Case103_BadEntryLeavesNothingMapped) {
  TestSession session(daemon());
  const uint64_t good = session.SealedMemory(2 * kPage);
  const uint64_t unsealed = session.Allocate(kPage).memory_id();
  std::vector<v1::MdlEntry> chain = {MdlEntry(good, 0, kPage, kBase), MdlEntry(good, kPage, kPage, kBase + kPage),
                                     MdlEntry(unsealed, 0, kPage, kBase + 2 * kPage)};
  ExpectRefused(Build(session, chain, 3 * kPage), ErrorReason::MEMORY_NOT_SEALED, "mdl_chain[2].memory_id");
  chain[2].set_memory_id(good);
  chain[2].set_byte_offset(2 * kPage);
  ExpectRefused(Build(session, chain, 3 * kPage), ErrorReason::MDL_RANGE_OUTSIDE_MEMORY, "mdl_chain[2].byte_count");
  ExpectNothingMapped(session);
  ExpectOk(session.Release(good));
}

// Row 103, with pages that may not be pinned: STATUS_INSUFFICIENT_RESOURCES, and everything as before.
TEST_P(NdkConformance, Case103_TooManyPagesLeaveNothingMapped) {
  TestSession session(tight_daemon());
  const uint64_t memory = session.SealedMemory(kTightPinnedBytes + kPage);
  const std::vector<v1::MdlEntry> chain = {MdlEntry(memory, 0, kTightPinnedBytes + kPage, kBase)};
  const auto refused = Build(session, chain, kTightPinnedBytes + kPage);
  ExpectRefused(refused, ErrorReason::QUOTA_PINNED_BYTES);
  EXPECT_EQ(refused.detail.limit(), kTightPinnedBytes);
  EXPECT_EQ(refused.detail.used(), 0u);
  ExpectNothingMapped(session);
  const auto built = Build(session, chain, kTightPinnedBytes);
  ExpectOk(built);
  ExpectOk(ReleaseMapping(session, built.response.lam_id()));
  ExpectNothingMapped(session);
  ExpectOk(session.Release(memory));
}

// Row 104. NDK: every entry is the start of a page, and stands for the whole of it.
TEST_P(NdkConformance, Case104_EntriesAreWholePages) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  const uint32_t privileged = PrivilegedToken(pair.far_session);
  TestMemory memory(pair.far_session, 3 * kPage);
  for (size_t index = 0; index < memory.bytes().size(); ++index) {
    memory.bytes()[index] = static_cast<std::byte>(index % 251);
  }
  const std::vector<uint64_t> pages = memory.Pages(0, 3);
  EXPECT_EQ(std::set<uint64_t>(pages.begin(), pages.end()).size(), 3u);
  std::vector<v1::Sge> sges;
  for (const uint64_t page : pages) {
    EXPECT_EQ(page % kPage, 0u);
    sges.push_back(Sge(page, kPage, privileged));
  }
  ExpectCompletion(probe.OwnerWrites(sges), NtStatus::kSuccess);
  EXPECT_EQ(probe.peer_memory().Text(0, 3 * kPage), memory.Text(0, 3 * kPage));
}

// Row 104, afterwards: the released mapping leaves memory and descriptors as they were: other uses of the same pages go
// on, and they can be mapped again.
TEST_P(NdkConformance, Case104_MemoryStaysAsItWasAfterRelease) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  const uint32_t privileged = PrivilegedToken(pair.far_session);
  RegisteredMemory region(pair.far_session, kPage, kMrRemoteRead);
  region.memory.SetText(0, "unmoved");
  const std::vector<v1::MdlEntry> chain = {MdlEntry(region.memory.id(), 0, kPage, kBase)};
  const auto first = Build(pair.far_session, chain, kPage);
  const auto second = Build(pair.far_session, chain, kPage);
  ExpectOk(first);
  ExpectOk(second);
  EXPECT_EQ(pair.far_session.Use("registered_bytes").used(), 3 * kPage);
  EXPECT_EQ(pair.far_session.Use("pinned_bytes").used(), kPage);
  ExpectOk(ReleaseMapping(pair.far_session, first.response.lam_id()));
  EXPECT_EQ(pair.far_session.Use("registered_bytes").used(), 2 * kPage);
  EXPECT_EQ(pair.far_session.Use("pinned_bytes").used(), kPage);

  ExpectCompletion(probe.PeerReads(kBase, 7, region.remote_token()), NtStatus::kSuccess);
  EXPECT_EQ(probe.peer_memory().Text(0, 7), "unmoved");
  ASSERT_EQ(second.response.adapter_page_array_size(), 1);
  pair.far.MustPost({ReceiveRequest({Sge(second.response.adapter_page_array(0), 5, privileged)})});
  pair.near.MustRun(SendRequest({InlineSge("MOVED")}, v1::OP_FLAG_INLINE));
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kSuccess);
  EXPECT_EQ(region.memory.Text(0, 7), "MOVEDed");
  ExpectOk(Build(pair.far_session, chain, kPage));
}

// Row 104, about the mapping itself: its logical addresses are dead, and it can be released once.
TEST_P(NdkConformance, Case104_ReleasedAddressesAreDead) {
  ConnectedPair pair(daemon());
  const uint32_t privileged = PrivilegedToken(pair.far_session);
  TestMemory memory(pair.far_session, kPage);
  const RegisteredMemory target(pair.near_session, kPage, kMrRemoteWrite);
  const v1::WorkRequest write =
      WriteRequest({Sge(memory.Pages(0, 1).front(), 16, privileged)}, kBase, target.remote_token());
  pair.far.MustRun(write);
  ExpectRefused(pair.far_session.Release(memory.id()), ErrorReason::MEMORY_IN_USE, "memory_id");
  ExpectOk(ReleaseMapping(pair.far_session, memory.lam().lam_id()));
  pair.far.ExpectPostRefused(write, ErrorReason::LOGICAL_ADDRESS_UNKNOWN, "write.sges[0].address");
  ExpectRefused(ReleaseMapping(pair.far_session, memory.lam().lam_id()), ErrorReason::OBJECT_NOT_FOUND, "lam_id");
  ExpectNothingMapped(pair.far_session);
  ExpectOk(pair.far_session.Release(memory.id()));
}

}  // namespace
}  // namespace rnicd::test
