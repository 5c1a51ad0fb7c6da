// Rows of groups A and B that traffic shows: which bytes a registration gives access to, and that no access works after
// its end. The far side owns the memory, the near side is the peer.
#include <string>

#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/peer_access.h"
#include "tests/support/process/held_card.h"

namespace rnicd::test {
namespace {

// Expects that both the owner's and the peer's use of a region with its former tokens is refused.
void ExpectTokensAreDead(AccessProbe& probe, const v1::Registration& registration, Where where = Where::current()) {
  const v1::Sge piece = Sge(registration.base_virtual_address(), 8, registration.local_token());
  ExpectCompletion(probe.OwnerWrites({piece}, where), NtStatus::kAccessViolation, 1, where);
  ExpectCompletion(probe.OwnerReads({piece}, where), NtStatus::kAccessViolation, 1, where);
  const uint64_t address = registration.base_virtual_address();
  ExpectCompletion(probe.PeerReads(address, 8, registration.remote_token(), where), NtStatus::kAccessViolation, 1,
                   where);
  ExpectCompletion(probe.PeerWrites("stale", address, registration.remote_token(), where), NtStatus::kAccessViolation,
                   1, where);
}

void ExpectTokensWork(AccessProbe& probe, const v1::Registration& registration, Where where = Where::current()) {
  const v1::Sge piece = Sge(registration.base_virtual_address(), 8, registration.local_token());
  ExpectCompletion(probe.OwnerWrites({piece}, where), NtStatus::kSuccess, 1, where);
  ExpectCompletion(probe.PeerReads(registration.base_virtual_address(), 8, registration.remote_token(), where),
                   NtStatus::kSuccess, 1, where);
}

// Row 9. NDK is silent on closing a registered region. Recommended and done: both tokens are dead when the close is
// complete.
TEST_P(NdkConformance, Case009_CloseOfARegisteredRegionStopsItsTraffic) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  RegisteredMemory region(pair.far_session, kPage, kMrRemoteRead | kMrRemoteWrite);
  region.memory.SetText(0, "keep out");
  ExpectTokensWork(probe, region.registration);
  EXPECT_EQ(probe.peer_memory().Text(0, 8), "keep out");
  ExpectOk(pair.far_session.CloseMr(region.mr_id));
  probe.peer_memory().SetText(0, "untaken!");
  ExpectTokensAreDead(probe, region.registration);
  EXPECT_EQ(probe.peer_memory().Text(0, 8), "untaken!");
  EXPECT_EQ(region.memory.Text(0, 8), "keep out");
}

// Row 17. NDK: with Length below the chain total only the prefix can be reached. That is true to the byte.
TEST_P(NdkConformance, Case017_PeerReachesThePrefixOnly) {
  constexpr uint64_t kLength = kPage + 100;
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  TestMemory memory(pair.far_session, 2 * kPage);
  memory.Fill(std::byte{'.'});
  v1::RegisterMrRequest request =
      RegisterRequest(pair.far_session.CreateMr(), {MdlEntry(memory.id(), 0, 2 * kPage, kBase)}, kLength);
  request.set_flags(kMrRemoteRead | kMrRemoteWrite);
  const auto registered = pair.far_session.Register(request);
  ExpectOk(registered);
  const uint32_t token = registered.response.registration().remote_token();
  ExpectCompletion(probe.PeerWrites("<", kBase, token), NtStatus::kSuccess);
  ExpectCompletion(probe.PeerWrites(">", kBase + kLength - 1, token), NtStatus::kSuccess);
  const std::string expected = "<" + std::string(kLength - 2, '.') + ">" + std::string(2 * kPage - kLength, '.');
  EXPECT_EQ(memory.Text(0, 2 * kPage), expected);

  ExpectCompletion(probe.PeerWrites("!", kBase + kLength, token), NtStatus::kAccessViolation);
  ExpectCompletion(probe.PeerWrites("!!", kBase + kLength - 1, token), NtStatus::kAccessViolation);
  ExpectCompletion(probe.PeerWrites("!", kBase - 1, token), NtStatus::kAccessViolation);
  ExpectCompletion(probe.PeerReads(kBase, kLength + 1, token), NtStatus::kAccessViolation);
  const uint32_t local_token = registered.response.registration().local_token();
  ExpectCompletion(probe.OwnerReads({Sge(kBase + kLength, 1, local_token)}), NtStatus::kAccessViolation);
  EXPECT_EQ(memory.Text(0, 2 * kPage), expected);
}

// Row 21. NDK: the address is an index. The peer names the bytes by that very address, whatever it is.
TEST_P(NdkConformance, Case021_PeerUsesTheAddressAsGiven) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  // Unaligned; the first page of every process, which cannot be mapped; an address that no processor accepts.
  for (const uint64_t base : {uint64_t{0x7000'0000'0123}, uint64_t{0x0fff}, uint64_t{0x8000'dead'beef'0001}}) {
    TestMemory memory(pair.far_session, 2 * kPage);
    const uint64_t offset = base % kPage;
    v1::RegisterMrRequest request =
        RegisterRequest(pair.far_session.CreateMr(), {MdlEntry(memory.id(), offset, 100, base)}, 100);
    request.set_flags(kMrRemoteRead | kMrRemoteWrite);
    const auto registered = pair.far_session.Register(request);
    ExpectOk(registered);
    const uint32_t token = registered.response.registration().remote_token();
    ExpectCompletion(probe.PeerWrites("by this address", base + 10, token), NtStatus::kSuccess);
    EXPECT_EQ(memory.Text(offset + 10, 15), "by this address");
    ExpectCompletion(probe.PeerReads(base + 13, 4, token), NtStatus::kSuccess);
    EXPECT_EQ(probe.peer_memory().Text(0, 4), "this");
    ExpectCompletion(probe.PeerWrites("x", base - 1, token), NtStatus::kAccessViolation);
    ExpectCompletion(probe.PeerWrites("x", base + 100, token), NtStatus::kAccessViolation);
  }
}

// Sends into this region, which must fail because the region does not allow it: the receive has the error, and the
// sender learns that its peer had no room.
void ExpectReceiveIsRefused(ConnectedPair& pair, const RegisteredMemory& region, Where where = Where::current()) {
  FreshConnection connection(pair.near_session, pair.far_session);
  connection.far.MustPost({ReceiveRequest({region.Piece(0, 16)})});
  const v1::WorkRequest send = SendRequest({InlineSge("letter")}, v1::OP_FLAG_INLINE);
  ExpectCompletion(connection.near.Run(send, where), NtStatus::kRemoteResources, 1, where);
  ExpectCompletion(connection.far.NextReceive(where), NtStatus::kAccessViolation, 1, where);
}

// Row 25. NDK: flags 0 grant local read and nothing else; use as the target of a receive or a read fails in the
// completion.
TEST_P(NdkConformance, Case025_NoFlagsLetOnlyTheOwnerRead) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  RegisteredMemory region(pair.far_session, kPage, 0);
  region.memory.SetText(0, "read only");
  ExpectCompletion(probe.OwnerWrites({region.Piece(0, 9)}), NtStatus::kSuccess);
  EXPECT_EQ(probe.peer_memory().Text(0, 9), "read only");

  const uint32_t token = region.remote_token();
  probe.peer_memory().SetText(0, "overwrite");
  ExpectCompletion(probe.OwnerReads({region.Piece(0, 9)}), NtStatus::kAccessViolation);
  ExpectReceiveIsRefused(pair, region);
  ExpectCompletion(probe.PeerReads(kBase, 9, token), NtStatus::kAccessViolation);
  ExpectCompletion(probe.PeerWrites("overwrite", kBase, token), NtStatus::kAccessViolation);
  EXPECT_EQ(region.memory.Text(0, 9), "read only");
  EXPECT_EQ(probe.peer_memory().Text(0, 9), "overwrite");
}

// Row 26. NDK: remote write is two bits, one of which is local write: peer, read sink and receive all write. Remote
// read is another right.
TEST_P(NdkConformance, Case026_RemoteWriteLetsTheOwnerWriteToo) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  const RegisteredMemory region(pair.far_session, kPage, kMrRemoteWrite | kMrReadSink);
  const uint32_t token = region.remote_token();
  ExpectCompletion(probe.PeerWrites("peer", kBase, token), NtStatus::kSuccess);
  probe.peer_memory().SetText(0, "read");
  ExpectCompletion(probe.OwnerReads({region.Piece(4, 4)}), NtStatus::kSuccess);
  pair.far.MustPost({ReceiveRequest({region.Piece(8, 4)})});
  pair.near.MustRun(SendRequest({InlineSge("sent")}, v1::OP_FLAG_INLINE));
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kSuccess);
  EXPECT_EQ(region.memory.Text(0, 12), "peerreadsent");
  ExpectCompletion(probe.PeerReads(kBase, 4, token), NtStatus::kAccessViolation);
}

// Row 29. NDK disagrees with itself on sinks without the flag where the adapter needs it. Recommended: the read fails
// in the completion. With the flag it works.
TEST_P(NdkConformance, Case029_ReadSinkNeedsItsRightWhereTheAdapterSaysSo) {
  ConnectedPair pair(daemon_with(AdapterFlagsWithout(kAdapterReadSinkNotRequired)));
  AccessProbe probe(pair.near_session, pair.far_session);
  EXPECT_EQ(AdapterInfo(pair.far_session).adapter_flags() & kAdapterReadSinkNotRequired, 0u);
  const RegisteredMemory plain(pair.far_session, kPage, kMrLocalWrite);
  const RegisteredMemory sink(pair.far_session, kPage, kMrLocalWrite | kMrReadSink);
  probe.peer_memory().SetText(0, "sunk");
  ExpectCompletion(probe.OwnerReads({plain.Piece(0, 4)}), NtStatus::kAccessViolation);
  EXPECT_EQ(plain.memory.Text(0, 4), std::string(4, '\0'));
  ExpectCompletion(probe.OwnerReads({sink.Piece(0, 4)}), NtStatus::kSuccess);
  EXPECT_EQ(sink.memory.Text(0, 4), "sunk");
  // For every operation but a read the region still has local write.
  FreshConnection connection(pair.near_session, pair.far_session);
  connection.far.MustPost({ReceiveRequest({plain.Piece(0, 4)})});
  connection.near.MustRun(SendRequest({InlineSge("sent")}, v1::OP_FLAG_INLINE));
  ExpectCompletion(connection.far.NextReceive(), NtStatus::kSuccess);
  EXPECT_EQ(plain.memory.Text(0, 4), "sent");
}

// Row 29, where the adapter does not need it: local write is enough.
TEST_P(NdkConformance, Case029_LocalWriteIsEnoughWhereTheAdapterNeedsNoMore) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  EXPECT_NE(AdapterInfo(pair.far_session).adapter_flags() & kAdapterReadSinkNotRequired, 0u);
  const RegisteredMemory plain(pair.far_session, kPage, kMrLocalWrite);
  probe.peer_memory().SetText(0, "sunk");
  ExpectCompletion(probe.OwnerReads({plain.Piece(0, 4)}), NtStatus::kSuccess);
  EXPECT_EQ(plain.memory.Text(0, 4), "sunk");
}

// Row 32. NDK: after the deregistration neither the owner nor a peer can use its token.
TEST_P(NdkConformance, Case032_DeregisterStopsLocalAndRemoteTraffic) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  RegisteredMemory region(pair.far_session, kPage, kMrRemoteRead | kMrRemoteWrite);
  region.memory.SetText(0, "keep out");
  ExpectTokensWork(probe, region.registration);
  ExpectOk(pair.far_session.Deregister(region.mr_id));
  probe.peer_memory().SetText(0, "untaken!");
  ExpectTokensAreDead(probe, region.registration);
  EXPECT_EQ(probe.peer_memory().Text(0, 8), "untaken!");
  EXPECT_EQ(region.memory.Text(0, 8), "keep out");
}

// Row 35. NDK is silent on a peer's read in flight. Recommended: it is finished first, or fails. Either way the pages
// are the owner's again when the deregistration is complete: the peer sees nothing of what the owner then puts there,
// and the memory can go.
TEST_P(NdkConformance, Case035_PeerReadInFlightSeesNothingLater) {
  ConnectedPair pair(daemon_with(HoldableReadsFlags()));
  RegisteredMemory source(pair.far_session, kPage, kMrRemoteRead);
  RegisteredMemory sink(pair.near_session, kPage, kMrLocalWrite | kMrReadSink);
  source.memory.Fill(std::byte{'a'});
  sink.memory.Fill(std::byte{'.'});
  HeldReads held;
  pair.near.MustPost({ReadRequest({sink.Piece(0, kPage)}, kBase, source.remote_token())});
  ExpectOk(pair.far_session.Deregister(source.mr_id));
  source.memory.Fill(std::byte{'b'});
  ExpectOk(pair.far_session.Release(source.memory.id()));
  held.LetGo();
  const v1::CqResultEx read = pair.near.NextInitiator();
  if (read.result().ntstatus() == kStatusSuccess) {
    EXPECT_EQ(sink.memory.Text(0, kPage), std::string(kPage, 'a'));
  } else {
    ExpectCompletion(read, NtStatus::kAccessViolation);
    EXPECT_EQ(sink.memory.Text(0, kPage).find('b'), std::string::npos);
  }
}

// Row 35, at the reader's end: nothing lands in a sink whose deregistration is complete.
TEST_P(NdkConformance, Case035_ReadInFlightLandsNowhereLater) {
  ConnectedPair pair(daemon_with(HoldableReadsFlags()));
  RegisteredMemory source(pair.far_session, kPage, kMrRemoteRead);
  RegisteredMemory sink(pair.near_session, kPage, kMrLocalWrite | kMrReadSink);
  source.memory.Fill(std::byte{'a'});
  HeldReads held;
  pair.near.MustPost({ReadRequest({sink.Piece(0, kPage)}, kBase, source.remote_token())});
  ExpectOk(pair.near_session.Deregister(sink.mr_id));
  sink.memory.Fill(std::byte{'z'});
  held.LetGo();
  const v1::CqResultEx read = pair.near.NextInitiator();
  if (read.result().ntstatus() != kStatusSuccess) {
    ExpectCompletion(read, NtStatus::kAccessViolation);
  }
  MustReadLater(pair.near_session, pair.far_session);
  EXPECT_EQ(sink.memory.Text(0, kPage), std::string(kPage, 'z'));
}

// Row 36. NDK: a deregistered region can be registered again, and a stale token must not reach the new buffer, at the
// same addresses though it be.
TEST_P(NdkConformance, Case036_StaleTokenDoesNotReachTheNewBuffer) {
  ConnectedPair pair(daemon());
  AccessProbe probe(pair.near_session, pair.far_session);
  RegisteredMemory old(pair.far_session, kPage, kMrRemoteRead | kMrRemoteWrite);
  TestMemory fresh(pair.far_session, kPage);
  old.memory.SetText(0, "old pages");
  fresh.SetText(0, "new pages");
  ExpectOk(pair.far_session.Deregister(old.mr_id));
  const v1::Registration again =
      pair.far_session.RegisterWhole(old.mr_id, fresh.id(), kPage, kMrRemoteRead | kMrRemoteWrite);
  ExpectTokensAreDead(probe, old.registration);
  EXPECT_EQ(old.memory.Text(0, 9), "old pages");
  EXPECT_EQ(fresh.Text(0, 9), "new pages");

  ExpectCompletion(probe.PeerReads(kBase, 9, again.remote_token()), NtStatus::kSuccess);
  EXPECT_EQ(probe.peer_memory().Text(0, 9), "new pages");
  ExpectCompletion(probe.PeerWrites("rewritten", kBase, again.remote_token()), NtStatus::kSuccess);
  EXPECT_EQ(fresh.Text(0, 9), "rewritten");
  EXPECT_EQ(old.memory.Text(0, 9), "old pages");
}

}  // namespace
}  // namespace rnicd::test
