#include "tests/provider_contract/fake_wire_linux.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace rnicd::provider {
namespace {

uint64_t BytesOf(const std::vector<ibv_sge>& entries) {
  uint64_t bytes = 0;
  for (const ibv_sge& entry : entries) {
    bytes += entry.length;
  }
  return bytes;
}

uint64_t BytesOf(const PostedSend& request) { return BytesOf(request.entries) + request.inline_bytes.size(); }

// The queue pair that this one was connected to; 0 if it was not.
uint32_t PeerOf(const FakeVerbs& card, uint32_t number) {
  const auto connected = card.transition(number, IBV_QPS_RTR);
  return connected.has_value() ? connected->first.dest_qp_num : 0;
}

}  // namespace

FakeWire::FakeWire(FakeVerbs& card) : card_(card), thread_([this] { Run(); }) {}

FakeWire::~FakeWire() {
  stop_ = true;
  card_.changes.Add();
  thread_.join();
}

void FakeWire::Run() {
  while (!stop_) {
    const uint64_t seen = card_.changes.count();
    bool moved = false;
    for (const uint32_t number : card_.qp_nums()) {
      moved = Carry(number) || moved;
    }
    if (!moved && !stop_) {
      card_.changes.AwaitMoreThan(seen);
    }
  }
}

bool FakeWire::Allows(const PostedSend& request) const {
  const uint64_t bytes = BytesOf(request);
  const int right = request.opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  return bytes == 0 || std::ranges::any_of(card_.regions(), [&](const FakeRegion& region) {
           return region.rkey == request.rkey && (region.access & right) != 0 && request.remote_addr >= region.iova &&
                  bytes <= region.length && request.remote_addr - region.iova <= region.length - bytes;
         });
}

bool FakeWire::CarrySend(const PostedSend& send, uint32_t peer) {
  const std::vector<PostedReceive> receives = card_.PostedReceives(peer);
  const auto bytes = static_cast<uint32_t>(BytesOf(send));
  const bool immediate = send.opcode == IBV_WR_SEND_WITH_IMM;
  if (receives.empty() || !card_.Receive(peer, bytes, immediate ? IBV_WC_WITH_IMM : 0, immediate ? send.imm_data : 0)) {
    return false;
  }
  const bool fits = bytes <= BytesOf(receives.front().entries);
  return card_.Complete(send.qp_num, fits ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
}

bool FakeWire::Carry(uint32_t number) {
  const std::vector<PostedSend> posted = card_.PostedSends(number);
  if (posted.empty()) {
    return false;
  }
  const PostedSend& request = posted.front();
  const uint32_t peer = PeerOf(card_, number);
  const ibv_qp_state state = card_.state(peer);
  if (PeerOf(card_, peer) != number || (state != IBV_QPS_RTR && state != IBV_QPS_RTS)) {
    return card_.Complete(number, IBV_WC_RETRY_EXC_ERR);
  }
  switch (request.opcode) {
    case IBV_WR_RDMA_READ:
    case IBV_WR_RDMA_WRITE:
      if (!Allows(request)) {
        if (peer != number) {
          card_.FailQp(peer);
        }
        return card_.Complete(number, IBV_WC_REM_ACCESS_ERR);
      }
      return card_.Complete(number);
    default:
      return CarrySend(request, peer);
  }
}

}  // namespace rnicd::provider
