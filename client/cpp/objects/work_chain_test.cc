#include "client/cpp/work_chain.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "wire/work_request.h"

namespace rnicd::inline client {
namespace {

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

constexpr RemoteMemory kRemote{.address = {0x7000}, .token = {0xab01}};

v1::WorkRequest WireOf(const WorkRequest& request) {
  const absl::StatusOr<v1::WorkRequest> wire = wire::ToWire(request);
  EXPECT_TRUE(wire.ok()) << wire.status();
  return wire.ok() ? *wire : v1::WorkRequest();
}

// The only request of the chain, as it is sent.
v1::WorkRequest WireOf(const WorkChain& chain) {
  EXPECT_EQ(chain.size(), 1u);
  return WireOf(chain.requests().front());
}

TEST(WorkChain, SgesOfBothKindsAndOptionsAreSent) {
  const std::string_view text = "hello";
  const v1::WorkRequest wire =
      WireOf(WorkChain().Send({Sge::Of(BytesOf(text), LocalToken{7}), Sge::At(VirtualAddress{0x1000}, 3, LocalToken{8}),
                               Sge::At(LogicalAddress{0x2000}, 4096, PrivilegedToken{9})},
                              {.flags = kOpFlagSolicit | kOpFlagReadFence, .context = 77}));
  EXPECT_EQ(wire.flags(), 6u);
  EXPECT_EQ(wire.request_context(), 77u);
  ASSERT_EQ(wire.send().sges_size(), 3);
  EXPECT_EQ(wire.send().sges(0).address(), reinterpret_cast<uintptr_t>(text.data()));
  EXPECT_EQ(wire.send().sges(0).length(), 5u);
  EXPECT_EQ(wire.send().sges(0).token(), 7u);
  EXPECT_EQ(wire.send().sges(1).address(), 0x1000u);
  EXPECT_EQ(wire.send().sges(2).address(), 0x2000u);
  EXPECT_EQ(wire.send().sges(2).token(), 9u);
}

TEST(WorkChain, ReadAndWriteNameThePeersMemory) {
  const Sge sge{.address = 1, .length = 2, .token = {3}};
  const v1::WorkRequest read = WireOf(WorkChain().Read({sge}, kRemote, {.flags = kOpFlagReadLocalInvalidate}));
  EXPECT_EQ(read.read().remote_address(), 0x7000u);
  EXPECT_EQ(read.read().remote_token(), 0xab01u);
  EXPECT_EQ(read.read().sges(0).length(), 2u);
  EXPECT_EQ(read.flags(), 0x100u);
  const v1::WorkRequest write = WireOf(WorkChain().Write({sge}, kRemote, {}));
  EXPECT_EQ(write.write().remote_address(), 0x7000u);
  EXPECT_EQ(write.write().sges(0).token(), 3u);
  EXPECT_EQ(write.flags(), 0u);
}

TEST(WorkChain, InlineFormsCopyTheBytes) {
  std::string text = "payload";
  const WorkChain write = WorkChain().WriteInline(BytesOf(text), kRemote, {.flags = kOpFlagDefer});
  const WorkChain send = WorkChain().SendInline(BytesOf(text), {});
  const WorkChain send_and_invalidate = WorkChain().SendInlineAndInvalidate(BytesOf(text), RemoteToken{5}, {});
  text = "changed";
  EXPECT_EQ(WireOf(write).flags(), kOpFlagDefer | kOpFlagInline);
  ASSERT_EQ(WireOf(write).write().sges_size(), 1);
  EXPECT_EQ(WireOf(write).write().sges(0).inline_data(), "payload");
  EXPECT_EQ(WireOf(write).write().sges(0).length(), 7u);
  EXPECT_EQ(WireOf(send).send().sges(0).inline_data(), "payload");
  EXPECT_EQ(WireOf(send_and_invalidate).send_and_invalidate().sges(0).inline_data(), "payload");
  EXPECT_EQ(WireOf(send_and_invalidate).send_and_invalidate().remote_token(), 5u);
}

TEST(WorkChain, EmptyTransfersHaveNoSge) {
  EXPECT_EQ(WireOf(WorkChain().SendInline({}, {})).send().sges_size(), 0);
  EXPECT_TRUE(WireOf(WorkChain().Receive({}, {.context = 4})).has_receive());
  EXPECT_EQ(WireOf(WorkChain().SendAndInvalidate({}, RemoteToken{6}, {})).send_and_invalidate().remote_token(), 6u);
}

TEST(WorkChain, SgeOfFourGibibytesIsRefusedInsteadOfCut) {
  const Sge most{.address = 1, .length = UINT32_MAX, .token = {3}};
  EXPECT_EQ(WireOf(WorkChain().Receive({most}, {})).receive().sges(0).length(), UINT32_MAX);
  const Sge more{.address = 1, .length = 1ull << 32, .token = {3}};
  const absl::Status status = wire::ToWire(WorkChain().Receive({most, more}, {}).requests().front()).status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::TRANSFER_TOO_LONG));
  EXPECT_EQ(ErrorInfoOf(status).field, "receive.sges");
}

// A chain whose sources are gone, and which has grown since its first request.
WorkChain GrownChain() {
  std::string text = "payload";
  WorkChain chain;
  chain.SendInline(BytesOf(text), {});
  for (int count = 0; count < 100; ++count) {
    chain.WriteInline(BytesOf(text), kRemote, {});
  }
  text = "changed";
  return chain;
}

void ExpectPayloads(const WorkChain& chain) {
  ASSERT_EQ(chain.size(), 101u);
  EXPECT_EQ(WireOf(chain.requests().front()).send().sges(0).inline_data(), "payload");
  EXPECT_EQ(WireOf(chain.requests().back()).write().sges(0).inline_data(), "payload");
}

TEST(WorkChain, WhatItsRequestsReferToSurvivesGrowing) { ExpectPayloads(GrownChain()); }

TEST(WorkChain, WhatItsRequestsReferToSurvivesBeingMovedAndCopied) {
  WorkChain copy;
  WorkChain moved;
  {
    WorkChain chain = GrownChain();
    copy = chain;
    moved = std::move(chain);
  }
  ExpectPayloads(copy);
  ExpectPayloads(moved);
  const WorkChain second = copy;
  copy = WorkChain().Receive({}, {});
  ExpectPayloads(second);
}

TEST(WorkChain, CopiesGrowApart) {
  WorkChain one = WorkChain().SendInline(BytesOf("one"), {});
  WorkChain other = one;
  one.SendInline(BytesOf("two"), {});
  other.SendInline(BytesOf("three"), {});
  ASSERT_EQ(one.size(), 2u);
  ASSERT_EQ(other.size(), 2u);
  EXPECT_EQ(WireOf(one.requests()[1]).send().sges(0).inline_data(), "two");
  EXPECT_EQ(WireOf(other.requests()[1]).send().sges(0).inline_data(), "three");
  EXPECT_EQ(WireOf(other.requests()[0]).send().sges(0).inline_data(), "one");
}

}  // namespace
}  // namespace rnicd::inline client
