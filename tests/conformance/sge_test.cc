// Group H of the edge cases, first part: the memory that requests name, and inline data.
#include <string>
#include <vector>

#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/queue_steps.h"

namespace rnicd::test {
namespace {

// A token that no memory has.
constexpr uint32_t kGarbageToken = 0xdead'beef;

// Row 105. NDK: with the privileged token an SGE names logical addresses: the source of a send and the place of a
// receive. Pages need not be adjacent, so each SGE stays within one; here they come in descending order.
TEST_P(NdkConformance, Case105_PrivilegedTokenSendsAndReceivesLogicalAddresses) {
  ConnectedPair pair(daemon());
  TestMemory source(pair.near_session, 2 * kPage);
  TestMemory sink(pair.far_session, 2 * kPage);
  source.SetText(kPage + 100, "upper ");
  source.SetText(8, "lower");
  const uint32_t near_token = PrivilegedToken(pair.near_session);
  const uint32_t far_token = PrivilegedToken(pair.far_session);
  pair.far.MustPost({ReceiveRequest(
      {Sge(LogicalAddressOf(sink, kPage + 40), 7, far_token), Sge(LogicalAddressOf(sink, 3), 4, far_token)}, 105)});
  pair.near.MustRun(SendRequest(
      {Sge(LogicalAddressOf(source, kPage + 100), 6, near_token), Sge(LogicalAddressOf(source, 8), 5, near_token)}));
  const v1::CqResultEx received = pair.far.NextReceive();
  ExpectCompletion(received, NtStatus::kSuccess, 105);
  EXPECT_EQ(received.result().bytes_transferred(), 11u);
  EXPECT_EQ(sink.Text(kPage + 40, 7), "upper l");
  EXPECT_EQ(sink.Text(3, 4), "ower");
}

// Row 105, for the source of a write.
TEST_P(NdkConformance, Case105_PrivilegedTokenIsTheSourceOfAWrite) {
  ConnectedPair pair(daemon());
  TestMemory source(pair.near_session, kPage);
  RegisteredMemory target(pair.far_session, kPage, kMrRemoteWrite);
  source.SetText(kPage - 4, "tail");
  pair.near.MustRun(WriteRequest({Sge(LogicalAddressOf(source, kPage - 4), 4, PrivilegedToken(pair.near_session))},
                                 kBase + 20, target.remote_token()));
  EXPECT_EQ(target.memory.Text(20, 4), "tail");
}

// Row 105. NDK is silent on addresses that no mapping has. Here they are refused at once, whoever mapped them.
TEST_P(NdkConformance, Case105_LogicalAddressMustLieInALiveMapping) {
  ConnectedPair pair(daemon());
  TestMemory memory(pair.near_session, 2 * kPage);
  TestMemory foreign(pair.far_session, kPage);
  const uint32_t token = PrivilegedToken(pair.near_session);
  const uint64_t last_page = LogicalAddressOf(memory, kPage);
  pair.near.ExpectPostRefused(SendRequest({Sge(last_page + kPage - 8, 9, token)}), ErrorReason::LOGICAL_ADDRESS_UNKNOWN,
                              "send.sges[0].address");
  pair.near.ExpectPostRefused(WriteRequest({Sge(last_page, 8, token), Sge(last_page + kPage, 8, token)}, kBase, 1),
                              ErrorReason::LOGICAL_ADDRESS_UNKNOWN, "write.sges[1].address");
  pair.near.ExpectPostRefused(ReceiveRequest({Sge(last_page + kPage - 8, 9, token)}),
                              ErrorReason::LOGICAL_ADDRESS_UNKNOWN, "receive.sges[0].address");
  v1::ReleaseLamRequest release;
  release.set_lam_id(memory.lam().lam_id());
  ExpectOk(pair.near_session.Call(&MemoryStub::ReleaseLam, release));
  pair.near.ExpectPostRefused(SendRequest({Sge(last_page, 8, token)}), ErrorReason::LOGICAL_ADDRESS_UNKNOWN,
                              "send.sges[0].address");
  pair.near.ExpectPostRefused(SendRequest({Sge(LogicalAddressOf(foreign, 0), 8, token)}),
                              ErrorReason::LOGICAL_ADDRESS_UNKNOWN, "send.sges[0].address");
}

// Row 106. NDK: where the adapter flag RDMA_READ_SINK_NOT_REQUIRED is set the privileged token may be a read sink.
TEST_P(NdkConformance, Case106_PrivilegedReadSinkWorksWhereTheAdapterAllowsIt) {
  ConnectedPair pair(daemon());
  ASSERT_NE(AdapterInfo(pair.near_session).adapter_flags() & kAdapterReadSinkNotRequired, 0u);
  TestMemory sink(pair.near_session, kPage);
  RegisteredMemory source(pair.far_session, kPage, kMrRemoteRead);
  source.memory.SetText(64, "fetched");
  pair.near.MustRun(ReadRequest({Sge(LogicalAddressOf(sink, 10), 7, PrivilegedToken(pair.near_session))}, kBase + 64,
                                source.remote_token()));
  EXPECT_EQ(sink.Text(10, 7), "fetched");
}

// Row 106, where the flag is clear. NDK does not allow it and names no code; here STATUS_ACCESS_VIOLATION at once. A
// region that was registered as a read sink is the way to read, and the refusal leaves the queue pair usable.
TEST_P(NdkConformance, Case106_PrivilegedReadSinkIsRefusedElsewhere) {
  ConnectedPair pair(daemon_with(AdapterFlagsWithout(kAdapterReadSinkNotRequired)));
  ASSERT_EQ(AdapterInfo(pair.near_session).adapter_flags() & kAdapterReadSinkNotRequired, 0u);
  TestMemory forbidden(pair.near_session, kPage);
  RegisteredMemory sink(pair.near_session, kPage, kMrLocalWrite | v1::MR_FLAG_RDMA_READ_SINK);
  RegisteredMemory source(pair.far_session, kPage, kMrRemoteRead);
  source.memory.SetText(0, "fetched");
  const v1::Sge privileged = Sge(LogicalAddressOf(forbidden, 0), 7, PrivilegedToken(pair.near_session));
  pair.near.ExpectPostRefused(ReadRequest({privileged}, kBase, source.remote_token()),
                              ErrorReason::READ_SINK_PRIVILEGED, "read.sges[0].token");
  pair.near.ExpectPostRefused(ReadRequest({sink.Piece(0, 1), privileged}, kBase, source.remote_token()),
                              ErrorReason::READ_SINK_PRIVILEGED, "read.sges[1].token");
  EXPECT_EQ(forbidden.Text(0, 7), std::string(7, '\0'));
  pair.near.MustRun(ReadRequest({sink.Piece(0, 7)}, kBase, source.remote_token()));
  EXPECT_EQ(sink.memory.Text(0, 7), "fetched");
}

// Row 107. NDK: the privileged token must never permit remote access, by whichever name a peer tries the memory.
TEST_P(NdkConformance, Case107_PeerCannotUseThePrivilegedToken) {
  for (const bool write : {true, false}) {
    for (const bool logical : {true, false}) {
      SCOPED_TRACE(std::string(write ? "write" : "read") + (logical ? " of a logical address" : " of an address"));
      ConnectedPair pair(daemon());
      RegisteredMemory secret(pair.far_session, kPage, kMrRemoteRead | kMrRemoteWrite);
      secret.memory.SetText(0, "secret");
      RegisteredMemory own(pair.near_session, kPage, kMrSink);
      own.memory.SetText(0, "intent");
      const uint64_t address = logical ? LogicalAddressOf(secret.memory, 0) : kBase;
      const uint32_t token = PrivilegedToken(pair.far_session);
      pair.far.MustPost({ReceiveRequest({}, 107)});
      const v1::CqResultEx refused = pair.near.Run(write ? WriteRequest({own.Piece(0, 6)}, address, token)
                                                         : ReadRequest({own.Piece(0, 6)}, address, token));
      ExpectCompletion(refused, NtStatus::kAccessViolation);
      EXPECT_EQ(secret.memory.Text(0, 6), "secret");
      EXPECT_EQ(own.memory.Text(0, 6), "intent");
      ExpectCompletion(pair.far.NextReceive(), NtStatus::kCancelled, 107);
      ExpectInError(pair.near);
      ExpectInError(pair.far);
    }
  }
}

// Row 108. NDK is silent on an SGE that begins inside its region and ends past it. Recommended: the completion has
// STATUS_ACCESS_VIOLATION. No byte behind the region is read or written.
TEST_P(NdkConformance, Case108_SgePastItsRegionFailsTheRequest) {
  for (const v1::OperationType type : {v1::OPERATION_TYPE_SEND, v1::OPERATION_TYPE_WRITE, v1::OPERATION_TYPE_READ}) {
    SCOPED_TRACE(v1::OperationType_Name(type));
    ConnectedPair pair(daemon());
    RegisteredMemory near(pair.near_session, 2 * kPage, kPage, kMrLocalWrite);
    RegisteredMemory far(pair.far_session, kPage, kMrRemoteRead | kMrRemoteWrite);
    near.memory.Fill(std::byte{'n'});
    near.memory.SetText(kPage, "outside");
    far.memory.Fill(std::byte{'f'});
    const v1::Sge crossing = near.Piece(kPage - 8, 16);
    v1::WorkRequest request = SendRequest({crossing});
    if (type == v1::OPERATION_TYPE_WRITE) {
      request = WriteRequest({crossing}, kBase, far.remote_token());
    } else if (type == v1::OPERATION_TYPE_READ) {
      request = ReadRequest({crossing}, kBase, far.remote_token());
    }
    pair.far.MustPost({ReceiveRequest({far.Piece(0, 64)})});
    const v1::CqResultEx failed = pair.near.Run(request);
    ExpectCompletion(failed, NtStatus::kAccessViolation);
    EXPECT_EQ(failed.type(), type);
    EXPECT_EQ(near.memory.Text(kPage, 7), "outside");
    EXPECT_EQ(far.memory.Text(8, 8), "ffffffff");
    ExpectInError(pair.near);
  }
}

// Row 108, for a receive: it has STATUS_ACCESS_VIOLATION, and its sender learns that the peer had no room.
TEST_P(NdkConformance, Case108_ReceivePastItsRegionFailsBothSides) {
  ConnectedPair pair(daemon());
  RegisteredMemory far(pair.far_session, 2 * kPage, kPage, kMrLocalWrite);
  far.memory.SetText(kPage, "outside");
  pair.far.MustPost({ReceiveRequest({far.Piece(kPage - 8, 16)}, 108)});
  ExpectCompletion(pair.near.Run(SendRequest({InlineSge(std::string(16, 'n'))}, kInline)), NtStatus::kRemoteResources);
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kAccessViolation, 108);
  EXPECT_EQ(far.memory.Text(kPage, 7), "outside");
  ExpectInError(pair.near);
  ExpectInError(pair.far);
}

// Row 109. NDK is silent on receiving into a region without the local write right. Recommended: the completion has
// STATUS_ACCESS_VIOLATION, and the memory stays as it is.
TEST_P(NdkConformance, Case109_ReceiveNeedsLocalWrite) {
  ConnectedPair pair(daemon());
  RegisteredMemory far(pair.far_session, kPage, kMrRemoteRead);
  far.memory.SetText(0, "constant");
  pair.far.MustPost({ReceiveRequest({far.Piece(0, 64)}, 109)});
  ExpectCompletion(pair.near.Run(SendRequest({InlineSge("variable")}, kInline)), NtStatus::kRemoteResources);
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kAccessViolation, 109);
  EXPECT_EQ(far.memory.Text(0, 8), "constant");
}

// Row 109, for the sink of a read.
TEST_P(NdkConformance, Case109_ReadSinkNeedsLocalWrite) {
  ConnectedPair pair(daemon());
  RegisteredMemory sink(pair.near_session, kPage, kMrRemoteRead);
  RegisteredMemory source(pair.far_session, kPage, kMrRemoteRead);
  sink.memory.SetText(0, "constant");
  source.memory.SetText(0, "variable");
  ExpectCompletion(pair.near.Run(ReadRequest({sink.Piece(0, 8)}, kBase, source.remote_token())),
                   NtStatus::kAccessViolation);
  EXPECT_EQ(sink.memory.Text(0, 8), "constant");
}

// Row 110. NDK: with INLINE tokens must be ignored, and there may be more SGEs than the queue pair's limit.
TEST_P(NdkConformance, Case110_InlineIgnoresTokensAndTheSgeLimit) {
  ConnectedPair pair(daemon(), {.max_initiator_request_sge = 2});
  RegisteredMemory far(pair.far_session, kPage, kMrRemoteWrite);
  std::vector<v1::Sge> sges;
  for (const char* piece : {"these ", "are ", "five ", "small ", "pieces"}) {
    sges.push_back(InlineSge(piece));
    sges.back().set_address(0xffff'ffff'ffff'fff0);
    sges.back().set_token(kGarbageToken);
  }
  const std::string whole = "these are five small pieces";
  pair.far.MustPost({ReceiveRequest({far.Piece(0, 256)}, 110)});
  pair.near.MustRun(SendRequest(sges, kInline));
  const v1::CqResultEx received = pair.far.NextReceive();
  ExpectCompletion(received, NtStatus::kSuccess, 110);
  EXPECT_EQ(received.result().bytes_transferred(), whole.size());
  EXPECT_EQ(far.memory.Text(0, whole.size()), whole);
  pair.near.MustRun(WriteRequest(sges, kBase + 512, far.remote_token(), kInline));
  EXPECT_EQ(far.memory.Text(512, whole.size()), whole);
}

// Row 111. NDK: the buffer of an INLINE request may be overwritten when the call has returned. On the wire the payload
// rides in the request. The memory that the same SGE names has other bytes when the send is posted, and again others
// when it is executed; the peer sees neither.
TEST_P(NdkConformance, Case111_PeerSeesTheInlineBytesOfTheCall) {
  ConnectedPair pair(daemon());
  RegisteredMemory near(pair.near_session, kPage, kMrLocalWrite);
  RegisteredMemory far(pair.far_session, kPage, kMrLocalWrite);
  near.memory.SetText(0, "elder");
  v1::Sge sge = InlineSge("given");
  sge.set_address(kBase);
  sge.set_token(near.registration.local_token());
  pair.near.MustPost({SendRequest({sge}, kInline, 111)});
  near.memory.SetText(0, "later");
  pair.far.MustPost({ReceiveRequest({far.Piece(0, 5)})});
  ExpectCompletion(pair.near.NextInitiator(), NtStatus::kSuccess, 111);
  ExpectCompletion(pair.far.NextReceive(), NtStatus::kSuccess);
  EXPECT_EQ(far.memory.Text(0, 5), "given");
}

// Row 112. NDK: InlineDataSize bytes fit, one more does not. Recommended code: STATUS_INVALID_PARAMETER. The sum over
// all SGEs counts.
TEST_P(NdkConformance, Case112_InlineDataSizeIsTheLastThatFits) {
  constexpr uint32_t kSize = 96;
  ConnectedPair pair(daemon(), {.inline_data_size = kSize});
  RegisteredMemory far(pair.far_session, kPage, kMrRemoteWrite);
  const std::vector<v1::Sge> fits = {InlineSge(std::string(kSize - 1, 'x')), InlineSge("y")};
  const std::vector<v1::Sge> one_more = {InlineSge(std::string(kSize - 1, 'x')), InlineSge("yz")};
  pair.near.ExpectPostRefused(SendRequest(one_more, kInline), ErrorReason::INLINE_TOO_LONG, "send.sges");
  pair.near.ExpectPostRefused(SendAndInvalidateRequest(one_more, 1, kInline), ErrorReason::INLINE_TOO_LONG,
                              "send_and_invalidate.sges");
  pair.near.ExpectPostRefused(WriteRequest(one_more, kBase, far.remote_token(), kInline), ErrorReason::INLINE_TOO_LONG,
                              "write.sges");
  pair.far.MustPost({ReceiveRequest({far.Piece(0, kPage)}, 112)});
  pair.near.MustRun(SendRequest(fits, kInline));
  const v1::CqResultEx received = pair.far.NextReceive();
  ExpectCompletion(received, NtStatus::kSuccess, 112);
  EXPECT_EQ(received.result().bytes_transferred(), kSize);
  pair.near.MustRun(WriteRequest(fits, kBase + 1024, far.remote_token(), kInline));
  EXPECT_EQ(far.memory.Text(1024, kSize), std::string(kSize - 1, 'x').append("y"));
}

// Row 112, as the wire has it: the length of an inline SGE is that of its bytes.
TEST_P(NdkConformance, Case112_InlineLengthMustBeThatOfTheBytes) {
  ConnectedPair pair(daemon());
  for (const uint32_t length : {0u, 4u, 6u}) {
    v1::Sge wrong = InlineSge("bytes");
    wrong.set_length(length);
    pair.near.ExpectPostRefused(SendRequest({wrong}, kInline), ErrorReason::FIELD_OUT_OF_RANGE, "send.sges[0].length");
    pair.near.ExpectPostRefused(WriteRequest({InlineSge("right"), wrong}, kBase, 1, kInline),
                                ErrorReason::FIELD_OUT_OF_RANGE, "write.sges[1].length");
  }
}

// Row 113. NDK's page of the write lists no INLINE, others speak of inline writes. Recommended: accept it.
TEST_P(NdkConformance, Case113_WriteTakesInlineData) {
  ConnectedPair pair(daemon());
  RegisteredMemory target(pair.far_session, kPage, kMrRemoteWrite);
  const v1::CqResultEx written = pair.near.Run(InlineWriteRequest("inline", kBase + 3, target.remote_token(), 113));
  ExpectCompletion(written, NtStatus::kSuccess, 113);
  EXPECT_EQ(written.type(), v1::OPERATION_TYPE_WRITE);
  EXPECT_EQ(target.memory.Text(3, 6), "inline");
}

// Row 113: requests that have no payload of their own do not take the flag.
TEST_P(NdkConformance, Case113_ReadTakesNoInlineFlag) {
  ConnectedPair pair(daemon());
  RegisteredMemory source(pair.far_session, kPage, kMrRemoteRead);
  pair.near.ExpectPostRefused(ReadRequest({InlineSge("inline")}, kBase, source.remote_token(), kInline),
                              ErrorReason::FLAGS_UNKNOWN, "flags");
}

}  // namespace
}  // namespace rnicd::test
