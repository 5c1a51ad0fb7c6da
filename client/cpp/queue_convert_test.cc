#include "client/cpp/queue_convert.h"

#include <string_view>
#include <utility>

#include "base/status.h"
#include "gtest/gtest.h"

namespace rnicd::inline client {
namespace {

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

constexpr RemoteMemory kRemote{.address = {0x7000}, .token = {0xab01}};

// The only request of the chain, as it is sent.
v1::WorkRequest WireOf(const WorkChain& chain) {
  EXPECT_EQ(chain.size(), 1u);
  const absl::StatusOr<v1::WorkRequest> wire = ToWire(chain.requests().front());
  EXPECT_TRUE(wire.ok()) << wire.status();
  return wire.ok() ? *wire : v1::WorkRequest();
}

TEST(QueueConvert, SgesOfBothKindsAndOptionsAreSent) {
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

TEST(QueueConvert, ReadAndWriteNameThePeersMemory) {
  const Sge sge{.address = 1, .length = 2, .token = 3};
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

TEST(QueueConvert, InlineFormsCopyTheBytes) {
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

TEST(QueueConvert, EmptyTransfersHaveNoSge) {
  EXPECT_EQ(WireOf(WorkChain().SendInline({}, {})).send().sges_size(), 0);
  EXPECT_TRUE(WireOf(WorkChain().Receive({}, {.context = 4})).has_receive());
  EXPECT_EQ(WireOf(WorkChain().SendAndInvalidate({}, RemoteToken{6}, {})).send_and_invalidate().remote_token(), 6u);
}

TEST(QueueConvert, SgeOfFourGibibytesIsRefusedInsteadOfCut) {
  const Sge most{.address = 1, .length = UINT32_MAX, .token = 3};
  EXPECT_EQ(WireOf(WorkChain().Receive({most}, {})).receive().sges(0).length(), UINT32_MAX);
  const Sge more{.address = 1, .length = 1ull << 32, .token = 3};
  const absl::Status status = ToWire(WorkChain().Receive({most, more}, {}).requests().front()).status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::TRANSFER_TOO_LONG));
  EXPECT_EQ(ErrorInfoOf(status).field, "receive.sges");
}

// The only request, whose objects are named by their ids.
v1::WorkRequest WireOf(decltype(WorkRequest::operation) operation) {
  const absl::StatusOr<v1::WorkRequest> wire = ToWire(WorkRequest{.operation = std::move(operation)});
  EXPECT_TRUE(wire.ok()) << wire.status();
  return wire.ok() ? *wire : v1::WorkRequest();
}

TEST(QueueConvert, FastRegisterNamesRegionPagesAndPlace) {
  const v1::WorkRequest::FastRegister wire =
      WireOf(WorkRequest::FastRegister{
                 .region = {11},
                 .registration = {.pages = {{0x2000}, {0x1000}}, .fbo = 100, .length = 5000, .base_address = {0x7064}}})
          .fast_register();
  EXPECT_EQ(wire.mr_id(), 11u);
  ASSERT_EQ(wire.adapter_page_array_size(), 2);
  EXPECT_EQ(wire.adapter_page_array(0), 0x2000u);
  EXPECT_EQ(wire.adapter_page_array(1), 0x1000u);
  EXPECT_EQ(wire.fbo(), 100u);
  EXPECT_EQ(wire.length(), 5000u);
  EXPECT_EQ(wire.base_virtual_address(), 0x7064u);
}

TEST(QueueConvert, InvalidateAndBindNameTheirObjects) {
  const v1::WorkRequest region = WireOf(WorkRequest::Invalidate{.target = MemoryRegionId{11}});
  EXPECT_EQ(region.invalidate().mr_id(), 11u);
  EXPECT_FALSE(region.invalidate().has_mw_id());
  const v1::WorkRequest window = WireOf(WorkRequest::Invalidate{.target = MemoryWindowId{12}});
  EXPECT_EQ(window.invalidate().mw_id(), 12u);
  EXPECT_FALSE(window.invalidate().has_mr_id());
  const v1::WorkRequest::Bind bind =
      WireOf(WorkRequest::Bind{.region = {13}, .window = {14}, .address = {0x7000}, .length = 10}).bind();
  EXPECT_EQ(bind.mr_id(), 13u);
  EXPECT_EQ(bind.mw_id(), 14u);
  EXPECT_EQ(bind.virtual_address(), 0x7000u);
  EXPECT_EQ(bind.length(), 10u);
}

TEST(QueueConvert, OutcomesKeepTheFailureAndEachToken) {
  v1::PostResponse response;
  response.set_posted(3);
  response.mutable_failure()->set_reason(v1::ERROR_REASON_FLAGS_UNKNOWN);
  response.mutable_failure()->set_field("requests[3].flags");
  response.add_issued_tokens()->set_request_index(0);
  response.mutable_issued_tokens(0)->set_remote_token(0x100);
  response.add_issued_tokens()->set_request_index(2);
  response.mutable_issued_tokens(1)->set_remote_token(0x102);
  const PostOutcome outcome = FromWire(response);
  EXPECT_EQ(outcome.posted, 3u);
  EXPECT_TRUE(FailedWith(outcome.failure, ErrorReason::FLAGS_UNKNOWN));
  EXPECT_EQ(ErrorInfoOf(outcome.failure).field, "requests[3].flags");
  EXPECT_EQ(outcome.TokenOf(0).value, 0x100u);
  EXPECT_EQ(outcome.TokenOf(1).value, 0u);
  EXPECT_EQ(outcome.TokenOf(2).value, 0x102u);
  EXPECT_TRUE(FromWire(v1::PostResponse()).failure.ok());
}

TEST(QueueConvert, CompletionsKeepStatusContextsAndInvalidatedToken) {
  v1::CqResultEx result;
  result.mutable_result()->set_ntstatus(0xC0000120);
  result.mutable_result()->set_bytes_transferred(12);
  result.mutable_result()->set_qp_context(1ull << 40);
  result.mutable_result()->set_request_context(1ull << 50);
  result.set_type(v1::OPERATION_TYPE_RECEIVE_AND_INVALIDATE);
  result.set_type_specific_completion_output(0xab02);
  const Completion completion = FromWire(result);
  EXPECT_EQ(completion.status, NtStatus::kCancelled);
  EXPECT_FALSE(completion.ok());
  EXPECT_EQ(completion.type, OperationType::kReceiveAndInvalidate);
  EXPECT_EQ(completion.bytes, 12u);
  EXPECT_EQ(completion.qp_context, 1ull << 40);
  EXPECT_EQ(completion.request_context, 1ull << 50);
  EXPECT_EQ(completion.invalidated_token.value, 0xab02u);
  EXPECT_TRUE(FromWire(v1::CqResultEx()).ok());
}

}  // namespace
}  // namespace rnicd::inline client
