#include "wire/work_request.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "base/ndk/op_flags.h"
#include "base/status.h"

namespace rnicd::wire {
namespace {

constexpr RemoteMemory kRemote{.address = {0x7000}, .token = {0xab01}};

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

v1::WorkRequest MustConvert(const WorkRequest& request) {
  const absl::StatusOr<v1::WorkRequest> wire = ToWire(request);
  EXPECT_TRUE(wire.ok()) << wire.status();
  return wire.ok() ? *wire : v1::WorkRequest();
}

// The operation as it arrives. Its views are into a message that lives until the next call.
WorkRequest::Operation Arrived(WorkRequest::Operation operation) {
  static v1::WorkRequest wire;
  wire = MustConvert({.request_context = 77, .flags = kOpFlagDefer, .operation = std::move(operation)});
  WorkRequest request = FromWire(wire);
  EXPECT_EQ(request.request_context, 77u);
  EXPECT_EQ(request.flags, kOpFlagDefer);
  return request.operation;
}

Sges TwoSges() {
  return {{.address = 0x1000, .length = 5, .token = {7}}, {.address = 0x2000, .length = UINT32_MAX, .token = {8}}};
}

void ExpectTwoSges(const Sges& sges) {
  ASSERT_EQ(sges.size(), 2u);
  EXPECT_EQ(sges[0].address, 0x1000u);
  EXPECT_EQ(sges[0].length, 5u);
  EXPECT_EQ(sges[0].token, LocalToken{7});
  EXPECT_TRUE(sges[0].inline_data.empty());
  EXPECT_EQ(sges[1].address, 0x2000u);
  EXPECT_EQ(sges[1].length, UINT32_MAX);
  EXPECT_EQ(sges[1].token, LocalToken{8});
}

TEST(WorkRequestWire, SendArrives) {
  ExpectTwoSges(std::get<WorkRequest::Send>(Arrived(WorkRequest::Send{TwoSges()})).sges);
}

TEST(WorkRequestWire, SendAndInvalidateArrivesWithItsToken) {
  const auto send = std::get<WorkRequest::SendAndInvalidate>(
      Arrived(WorkRequest::SendAndInvalidate{.sges = TwoSges(), .token = RemoteToken{6}}));
  ExpectTwoSges(send.sges);
  EXPECT_EQ(send.token, RemoteToken{6});
}

TEST(WorkRequestWire, ReceiveArrives) {
  ExpectTwoSges(std::get<WorkRequest::Receive>(Arrived(WorkRequest::Receive{TwoSges()})).sges);
}

TEST(WorkRequestWire, ReadArrivesWithThePeersMemory) {
  const auto read = std::get<WorkRequest::Read>(Arrived(WorkRequest::Read{.sges = TwoSges(), .remote = kRemote}));
  ExpectTwoSges(read.sges);
  EXPECT_EQ(read.remote.address, kRemote.address);
  EXPECT_EQ(read.remote.token, kRemote.token);
}

TEST(WorkRequestWire, WriteArrivesWithThePeersMemory) {
  const auto write = std::get<WorkRequest::Write>(Arrived(WorkRequest::Write{.sges = TwoSges(), .remote = kRemote}));
  ExpectTwoSges(write.sges);
  EXPECT_EQ(write.remote.address, kRemote.address);
  EXPECT_EQ(write.remote.token, kRemote.token);
}

TEST(WorkRequestWire, FastRegisterArrivesWithItsPagesInOrder) {
  const std::vector<uint64_t> pages = {0x2000, 0x1000};
  const auto operation = std::get<WorkRequest::FastRegister>(Arrived(
      WorkRequest::FastRegister{.region = {11}, .pages = pages, .fbo = 100, .length = 5000, .base_address = {0x7064}}));
  EXPECT_EQ(operation.region, MemoryRegionId{11});
  EXPECT_EQ(std::vector<uint64_t>(operation.pages.begin(), operation.pages.end()), pages);
  EXPECT_EQ(operation.fbo, 100u);
  EXPECT_EQ(operation.length, 5000u);
  EXPECT_EQ(operation.base_address, VirtualAddress{0x7064});
}

TEST(WorkRequestWire, InvalidateArrivesWithTheKindOfItsTarget) {
  const decltype(WorkRequest::Invalidate::target) targets[] = {std::monostate(), MemoryRegionId{11},
                                                               MemoryWindowId{12}};
  for (const auto& target : targets) {
    EXPECT_EQ(std::get<WorkRequest::Invalidate>(Arrived(WorkRequest::Invalidate{target})).target, target);
  }
}

TEST(WorkRequestWire, BindArrives) {
  const auto bind = std::get<WorkRequest::Bind>(
      Arrived(WorkRequest::Bind{.region = {13}, .window = {14}, .address = {0x7000}, .length = 10}));
  EXPECT_EQ(bind.region, MemoryRegionId{13});
  EXPECT_EQ(bind.window, MemoryWindowId{14});
  EXPECT_EQ(bind.address, VirtualAddress{0x7000});
  EXPECT_EQ(bind.length, 10u);
}

TEST(WorkRequestWire, ARequestWithoutAnOperationArrivesWithout) {
  EXPECT_TRUE(std::holds_alternative<std::monostate>(Arrived({})));
}

TEST(WorkRequestWire, InlineBytesArriveAsAViewIntoTheMessage) {
  std::string text = "payload";
  const v1::WorkRequest wire =
      MustConvert({.flags = kOpFlagInline, .operation = WorkRequest::Send{{Sge::Inline(BytesOf(text))}}});
  text = "changed";
  ASSERT_EQ(wire.send().sges_size(), 1);
  EXPECT_EQ(wire.send().sges(0).inline_data(), "payload");
  EXPECT_EQ(wire.send().sges(0).length(), 7u);
  const WorkRequest request = FromWire(wire);
  const Sge& sge = std::get<WorkRequest::Send>(request.operation).sges.at(0);
  EXPECT_EQ(static_cast<const void*>(sge.inline_data.data()), wire.send().sges(0).inline_data().data());
  EXPECT_EQ(sge.inline_data.size(), 7u);
}

TEST(WorkRequestWire, AnSgeOfFourGibibytesIsRefusedInsteadOfCut) {
  const Sges sges = {{.address = 1, .length = UINT32_MAX, .token = {3}},
                     {.address = 1, .length = 1ull << 32, .token = {3}}};
  const std::pair<WorkRequest::Operation, std::string_view> rows[] = {
      {WorkRequest::Send{sges}, "send.sges"},
      {WorkRequest::SendAndInvalidate{.sges = sges}, "send_and_invalidate.sges"},
      {WorkRequest::Receive{sges}, "receive.sges"},
      {WorkRequest::Read{.sges = sges}, "read.sges"},
      {WorkRequest::Write{.sges = sges}, "write.sges"},
  };
  for (const auto& [operation, field] : rows) {
    const absl::Status status = ToWire(WorkRequest{.operation = operation}).status();
    EXPECT_TRUE(FailedWith(status, ErrorReason::TRANSFER_TOO_LONG)) << field;
    EXPECT_EQ(ErrorInfoOf(status).field, field);
  }
}

TEST(WorkRequestWire, AChainKeepsItsOrder) {
  google::protobuf::RepeatedPtrField<v1::WorkRequest> requests;
  *requests.Add() = MustConvert({.request_context = 1, .operation = WorkRequest::Receive{}});
  *requests.Add() = MustConvert({.request_context = 2, .operation = WorkRequest::Bind{}});
  const std::vector<WorkRequest> chain = FromWire(requests);
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(chain[0].request_context, 1u);
  EXPECT_TRUE(std::holds_alternative<WorkRequest::Receive>(chain[0].operation));
  EXPECT_EQ(chain[1].request_context, 2u);
  EXPECT_TRUE(std::holds_alternative<WorkRequest::Bind>(chain[1].operation));
}

}  // namespace
}  // namespace rnicd::wire
