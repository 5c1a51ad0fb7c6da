// Group E of the edge cases, first half: which rights a fast registration may ask for, and what each of them opens.
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/fast_scene.h"
#include "tests/conformance/ndk_conformance.h"
#include "tests/conformance/queue_steps.h"

namespace rnicd::test {
namespace {

constexpr uint32_t kOpReadSink = v1::OP_FLAG_RDMA_READ_SINK;
// Daemon flags for an adapter without RDMA_READ_SINK_NOT_REQUIRED.
std::vector<std::string> ReadSinkRequired() { return AdapterFlagsWithout(kAdapterReadSinkNotRequired); }

// The near side sends `text` into the far side's region, at `address`. Returns the receive completion.
v1::CqResultEx ReceiveInto(FastScene& scene, uint64_t address, const std::string& text,
                           Where where = Where::current()) {
  scene.far().MustPost({ReceiveRequest({Sge(address, static_cast<uint32_t>(text.size()), scene.local_token())})});
  scene.near().MustPost({SendRequest({InlineSge(text)}, v1::OP_FLAG_INLINE | v1::OP_FLAG_SILENT_SUCCESS)});
  return scene.far().NextReceive(where);
}

// A registered region of the near side, which the far side reads.
v1::Registration Source(FastScene& scene, const std::string& text) {
  TestSession& session = scene.near_session();
  TestMemory memory(session, kPage);
  memory.SetText(0, text);
  return session.RegisterWhole(session.CreateMr(), memory.id(), kPage, v1::MR_FLAG_ALLOW_REMOTE_READ);
}

// Row 58. NDK: STATUS_ACCESS_VIOLATION inline when a region that was initialized without remote access is asked for a
// remote right.
TEST_P(NdkConformance, Case058_RemoteRightsNeedRemoteAccess) {
  FastScene scene(daemon(), 1, false);
  for (const uint32_t flags : {kOpRemoteRead, kOpRemoteWrite, kOpEveryRight}) {
    scene.far().ExpectPostRefused(scene.Request({0}, kPage, kBase, flags), ErrorReason::REGION_NO_REMOTE_ACCESS,
                                  "flags");
  }
  // The region is unchanged: its owner can still register it, and the refused request issued no remote token.
  const uint32_t token = scene.RegisterWhole(kOpLocalWrite);
  EXPECT_EQ(scene.ReadStatus(kBase, token, 1), kStatusAccessViolation);
}

// Row 59. NDK: local write alone is no remote right, though remote write contains its bit. The owner's transfers
// reach the pages, a peer's do not.
TEST_P(NdkConformance, Case059_LocalWriteAloneNeedsNoRemoteAccess) {
  FastScene scene(daemon(), 2, false);
  const uint32_t token = scene.Register({1, 0}, 2 * kPage, kBase, kOpLocalWrite);
  EXPECT_EQ(ReceiveInto(scene, kBase + kPage - 2, "local").result().ntstatus(), kStatusSuccess);
  EXPECT_EQ(scene.memory().Text(2 * kPage - 2, 2), "lo");
  EXPECT_EQ(scene.memory().Text(0, 3), "cal");
  EXPECT_EQ(scene.WriteStatus("!", kBase, token), kStatusAccessViolation);
  EXPECT_EQ(scene.ReadStatus(kBase, token, 1), kStatusAccessViolation);
  EXPECT_EQ(scene.memory().Text(kPage, 1), scene.Laid({1}, 0, 1));
}

// Row 59, with no flags at all: local read, which every region has, and no more.
TEST_P(NdkConformance, Case059_NoFlagsGrantLocalReadOnly) {
  FastScene scene(daemon(), 1, false);
  scene.RegisterWhole(0);
  TestMemory inbox(scene.near_session(), kPage);
  const uint64_t inbox_mr = scene.near_session().CreateMr();
  const v1::Registration registration =
      scene.near_session().RegisterWhole(inbox_mr, inbox.id(), kPage, v1::MR_FLAG_ALLOW_LOCAL_WRITE);
  scene.near().MustPost({ReceiveRequest({Sge(kBase, kPage, registration.local_token())})});
  scene.far().MustRun(SendRequest({Sge(kBase, kPage, scene.local_token())}));
  EXPECT_EQ(scene.near().NextReceive().result().ntstatus(), kStatusSuccess);
  EXPECT_TRUE(inbox.Text(0, kPage) == scene.Laid({0}, 0, kPage));
  const std::string before = scene.memory().Text(0, kPage);
  EXPECT_EQ(ReceiveInto(scene, kBase, "local").result().ntstatus(), kStatusAccessViolation);
  EXPECT_TRUE(scene.memory().Text(0, kPage) == before);
}

// Row 60. NDK: a region with remote access need not use it; then peers cannot reach it.
TEST_P(NdkConformance, Case060_RemoteAccessGrantsNothingUnasked) {
  FastScene scene(daemon(), 1, true);
  const std::string before = scene.memory().Text(0, kPage);
  for (const uint32_t flags : {0u, kOpLocalWrite}) {
    const uint32_t token = scene.RegisterWhole(flags);
    EXPECT_EQ(scene.ReadStatus(kBase, token, 1), kStatusAccessViolation) << "flags " << flags;
    EXPECT_EQ(scene.WriteStatus("!", kBase, token), kStatusAccessViolation) << "flags " << flags;
    scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  }
  EXPECT_TRUE(scene.memory().Text(0, kPage) == before);
}

// Row 61. NDK is silent on the upper bit of remote write alone. Recommended: STATUS_INVALID_PARAMETER.
TEST_P(NdkConformance, Case061_HalfOfRemoteWriteIsRefused) {
  FastScene scene(daemon(), 1);
  for (const uint32_t flags : {0x20u, 0x28u, 0xa0u, 0x21u}) {
    scene.far().ExpectPostRefused(scene.Request({0}, kPage, kBase, flags), ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE,
                                  "flags");
  }
}

// Row 61. NDK is silent on flags of other operations, and on bits without a meaning. Recommended:
// STATUS_INVALID_PARAMETER. Bits of the other set of rights (MrFlag) are among them.
TEST_P(NdkConformance, Case061_FlagsOfOtherOperationsAreRefused) {
  FastScene scene(daemon(), 1);
  for (const uint32_t flags :
       {uint32_t{v1::OP_FLAG_INLINE}, uint32_t{v1::OP_FLAG_SEND_AND_SOLICIT_EVENT},
        uint32_t{v1::OP_FLAG_RDMA_READ_LOCAL_INVALIDATE}, 0x5u, 0x400u, 0x80000000u, kOpEveryRight | 0x40u}) {
    scene.far().ExpectPostRefused(scene.Request({0}, kPage, kBase, flags), ErrorReason::FLAGS_UNKNOWN, "flags");
  }
}

// Row 62. NDK: where the adapter needs no right for read sinks, asking for it must do no harm.
TEST_P(NdkConformance, Case062_ReadSinkIsAcceptedWhereItIsNotNeeded) {
  FastScene scene(daemon(), 1);
  const v1::Registration source = Source(scene, "read into the region");
  for (const uint32_t flags : {kOpReadSink | kOpLocalWrite, kOpReadSink | kOpEveryRight, kOpLocalWrite}) {
    scene.memory().Fill(std::byte{0});
    scene.RegisterWhole(flags);
    scene.far().MustRun(ReadRequest({Sge(kBase + 5, 20, scene.local_token())}, kBase, source.remote_token()));
    EXPECT_EQ(scene.memory().Text(5, 20), "read into the region") << "flags " << flags;
    scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  }
}

// Row 62, where the adapter needs the right: with it a region is a sink, without it the read fails at the reader.
TEST_P(NdkConformance, Case062_ReadSinkIsWantedWhereItIsNeeded) {
  FastScene scene(daemon_with(ReadSinkRequired()), 1);
  const v1::Registration source = Source(scene, "read into the region");
  const v1::WorkRequest read = ReadRequest({Sge(kBase, 20, scene.local_token())}, kBase, source.remote_token());
  scene.RegisterWhole(kOpReadSink | kOpLocalWrite);
  scene.far().MustRun(read);
  EXPECT_EQ(scene.memory().Text(0, 20), "read into the region");
  scene.far().MustRun(InvalidateMrRequest(scene.mr()));
  scene.memory().Fill(std::byte{'-'});
  scene.RegisterWhole(kOpLocalWrite);
  EXPECT_EQ(scene.far().Run(read).result().ntstatus(), kStatusAccessViolation);
  EXPECT_EQ(scene.memory().Text(0, 20), std::string(20, '-'));
}

// Row 63. NDK is silent on a read sink in a region without remote access: the code is documented for the two remote
// flags only. Recommended: success. A sink is written by its owner's card.
TEST_P(NdkConformance, Case063_ReadSinkNeedsNoRemoteAccess) {
  FastScene scene(daemon(), 1, false);
  const v1::Registration source = Source(scene, "read into the region");
  const uint32_t token = scene.RegisterWhole(kOpReadSink | kOpLocalWrite);
  scene.far().MustRun(ReadRequest({Sge(kBase, 20, scene.local_token())}, kBase, source.remote_token()));
  EXPECT_EQ(scene.memory().Text(0, 20), "read into the region");
  EXPECT_EQ(scene.ReadStatus(kBase, token, 1), kStatusAccessViolation);
}

// Row 63, where the adapter needs the right for sinks.
TEST_P(NdkConformance, Case063_NeededReadSinkNeedsNoRemoteAccess) {
  FastScene scene(daemon_with(ReadSinkRequired()), 1, false);
  const v1::Registration source = Source(scene, "read into the region");
  scene.RegisterWhole(kOpReadSink | kOpLocalWrite);
  scene.far().MustRun(ReadRequest({Sge(kBase, 20, scene.local_token())}, kBase, source.remote_token()));
  EXPECT_EQ(scene.memory().Text(0, 20), "read into the region");
}

// Row 71. NDK: the first and the last byte of the region can be reached, and the bytes on either side of it cannot.
TEST_P(NdkConformance, Case071_FirstAndLastByteCanBeReached) {
  FastScene scene(daemon(), 3);
  constexpr uint32_t kFbo = 700;
  constexpr uint64_t kLength = 2 * kPage + 11;
  const uint64_t base = kBase + kFbo;
  const uint32_t token = scene.Register({2, 0, 1}, kLength, base, kOpEveryRight, kFbo);
  EXPECT_EQ(scene.Read(base, token, 1), scene.Laid({2, 0, 1}, kFbo, 1));
  EXPECT_EQ(scene.Read(base + kLength - 1, token, 1), scene.Laid({2, 0, 1}, kFbo + kLength - 1, 1));
  scene.Write("<", base, token);
  scene.Write(">", base + kLength - 1, token);
  EXPECT_EQ(scene.memory().Text(2 * kPage + kFbo, 1), "<");
  EXPECT_EQ(scene.memory().Text(kPage + kFbo + 10, 1), ">");
}

TEST_P(NdkConformance, Case071_BytesOnEitherSideCannotBeReached) {
  FastScene scene(daemon(), 3);
  constexpr uint32_t kFbo = 700;
  constexpr uint64_t kLength = 2 * kPage + 11;
  const uint64_t base = kBase + kFbo;
  const uint32_t token = scene.Register({0, 1, 2}, kLength, base, kOpEveryRight, kFbo);
  const std::string before = scene.memory().Text(0, 3 * kPage);
  // One byte outside, and the last or first byte together with one outside.
  for (const auto& [address, length] : std::vector<std::pair<uint64_t, uint32_t>>{
           {base - 1, 1}, {base - 1, 2}, {base + kLength, 1}, {base + kLength - 1, 2}}) {
    EXPECT_EQ(scene.ReadStatus(address, token, length), kStatusAccessViolation) << address - kBase;
    EXPECT_EQ(scene.WriteStatus(std::string(length, '!'), address, token), kStatusAccessViolation) << address - kBase;
  }
  EXPECT_TRUE(scene.memory().Text(0, 3 * kPage) == before) << "an access that failed wrote something";
  // The region and its token still work.
  EXPECT_EQ(scene.Read(base, token, 1), scene.Laid({0, 1, 2}, kFbo, 1));
}

// Row 72. A write where only remote read was granted: nothing is written, the writer sees the failure, and the
// connection ends, so that the target's posted receives complete with STATUS_CANCELLED. Microsoft's tests of the user
// mode interface want the same.
TEST_P(NdkConformance, Case072_WriteWithReadOnlyFailsAndFlushesTheTarget) {
  FastScene scene(daemon(), 1);
  const uint32_t token = scene.RegisterWhole(kOpRemoteRead);
  scene.far().MustPost({ReceiveRequest({}, 721), ReceiveRequest({}, 722)});
  EXPECT_TRUE(scene.Read(kBase, token, kPage) == scene.Laid({0}, 0, kPage));
  const std::string before = scene.memory().Text(0, kPage);
  EXPECT_EQ(scene.near().Run(InlineWriteRequest("!", kBase, token)).result().ntstatus(), kStatusAccessViolation);
  EXPECT_TRUE(scene.memory().Text(0, kPage) == before);
  for (const uint64_t context : {721, 722}) {
    const v1::CqResultEx completion = scene.far().NextReceive();
    EXPECT_EQ(completion.result().ntstatus(), kStatusCancelled);
    EXPECT_EQ(completion.result().request_context(), context);
  }
  EXPECT_EQ(scene.far().Query().state(), v1::QP_STATE_ERROR);
  EXPECT_EQ(scene.near().Query().state(), v1::QP_STATE_ERROR);
  scene.near().ExpectPostRefused(ReadRequest({}, kBase, token), ErrorReason::QP_NOT_CONNECTED, "");
}

// Row 72, the other way round: remote write does not bring remote read.
TEST_P(NdkConformance, Case072_ReadWithWriteOnlyFails) {
  FastScene scene(daemon(), 1);
  const uint32_t token = scene.RegisterWhole(kOpRemoteWrite);
  scene.Write("written", kBase, token);
  EXPECT_EQ(scene.memory().Text(0, 7), "written");
  EXPECT_EQ(scene.ReadStatus(kBase, token, 1), kStatusAccessViolation);
}

}  // namespace
}  // namespace rnicd::test
