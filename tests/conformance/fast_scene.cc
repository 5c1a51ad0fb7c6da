#include "tests/conformance/fast_scene.h"

#include <gtest/gtest.h>

#include <numeric>

namespace rnicd::test {
namespace {

// The context of requests that only block others.
constexpr uint64_t kHoldContext = 0x401d;

std::vector<size_t> FirstPages(uint64_t count) {
  std::vector<size_t> indices(count);
  std::iota(indices.begin(), indices.end(), size_t{0});
  return indices;
}

}  // namespace

FastScene::FastScene(DaemonProcess& daemon, uint32_t pages, bool remote_access)
    : pair_(daemon), memory_(pair_.far_session, pages * kPage), sink_(pair_.near_session, pages * kPage) {
  for (size_t index = 0; index < memory_.bytes().size(); ++index) {
    // The two factors make neighbours, and equal offsets of different pages, differ.
    memory_.bytes()[index] = static_cast<std::byte>((index % kPage * 7 + index / kPage * 31) % 251);
  }
  const uint64_t sink_mr = near_session().CreateMr();
  const v1::Registration sink = near_session().RegisterWhole(
      sink_mr, sink_.id(), sink_.bytes().size(), v1::MR_FLAG_ALLOW_LOCAL_WRITE | v1::MR_FLAG_RDMA_READ_SINK);
  sink_token_ = sink.local_token();
  mr_ = FastRegion(far_session(), pages, remote_access);
  local_token_ = far_session().LocalToken(mr_).response.local_token();
  WaitUntilConnected(far());
}

std::string FastScene::Laid(const std::vector<size_t>& indices, uint64_t fbo, uint64_t length) const {
  std::string text;
  text.reserve(indices.size() * kPage);
  for (const size_t index : indices) {
    text += memory_.Text(index * kPage, kPage);
  }
  return text.substr(fbo, length);
}

v1::WorkRequest FastScene::Request(const std::vector<size_t>& indices, uint64_t length, uint64_t base, uint32_t flags,
                                   uint32_t fbo, uint64_t context) {
  return FastRegisterRequest(mr_, memory_.Pages(indices), length, base, flags, fbo, context);
}

uint32_t FastScene::Register(const std::vector<size_t>& indices, uint64_t length, uint64_t base, uint32_t flags,
                             uint32_t fbo, Where where) {
  far().MustRun(Request(indices, length, base, flags, fbo), where);
  const auto token = far_session().RemoteToken(mr_);
  ExpectOk(token, where);
  return token.response.remote_token();
}

uint32_t FastScene::RegisterWhole(uint32_t flags, Where where) {
  const uint64_t size = memory_.bytes().size();
  return Register(FirstPages(size / kPage), size, kBase, flags, 0, where);
}

std::string FastScene::Read(uint64_t address, uint32_t remote_token, uint32_t length, Where where) {
  sink_.Fill(std::byte{0xff});
  near().MustRun(ReadRequest({Sge(kBase, length, sink_token_)}, address, remote_token), where);
  return sink_.Text(0, length);
}

void FastScene::Write(const std::string& text, uint64_t address, uint32_t remote_token, Where where) {
  near().MustRun(InlineWriteRequest(text, address, remote_token), where);
}

uint32_t FastScene::ReadStatus(uint64_t address, uint32_t remote_token, uint32_t length, Where where) {
  return StatusOverAnotherConnection(ReadRequest({Sge(kBase, length, sink_token_)}, address, remote_token), where);
}

uint32_t FastScene::WriteStatus(const std::string& text, uint64_t address, uint32_t remote_token, Where where) {
  return StatusOverAnotherConnection(InlineWriteRequest(text, address, remote_token), where);
}

uint32_t FastScene::StatusOverAnotherConnection(const v1::WorkRequest& request, Where where) {
  TestQueue near(near_session());
  TestQueue far(far_session());
  ConnectPair(near, far);
  return near.Run(request, where).result().ntstatus();
}

void HoldBack(TestQueue& queue) { queue.MustPost({SendRequest({}, v1::OP_FLAG_SILENT_SUCCESS, kHoldContext)}); }

void Release(TestQueue& peer) { peer.MustPost({ReceiveRequest({}, kHoldContext)}); }

}  // namespace rnicd::test
