#include "tests/support/hostile/ring_attacker.h"

#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "ring/shared_word.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kMemoryBytes = 16384;

void FillRandom(std::span<std::byte> bytes, std::mt19937_64& dice) {
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = dice();
    std::memcpy(bytes.data() + at, &word, sizeof(word));
  }
}

}  // namespace

RingAttacker::RingAttacker(const std::string& socket_dir, uint64_t seed)
    : socket_dir_(socket_dir), dice_(seed), client_(socket_dir + "/rpc.sock") {
  v1::OpenSessionRequest request;
  request.set_label("ring attacker");
  client_.Call(&SessionStub::OpenSession, request);
  MakeObjects();
  ring_ = RawRing::Open(client_, fd_socket());
}

RingAttacker::~RingAttacker() { StopDisturbing(); }

// What is refused has the id 0.
void RingAttacker::MakeObjects() {
  adapter_id_ = client_.Call(&AdapterStub::OpenAdapter, {}).response.adapter_id();
  v1::CreatePdRequest domain;
  domain.set_adapter_id(adapter_id_);
  pd_id_ = client_.Call(&MemoryStub::CreatePd, domain).response.pd_id();
  v1::AllocateMemoryRequest memory;
  memory.set_size(kMemoryBytes);
  const auto allocated = client_.Call(&MemoryStub::AllocateMemory, memory);
  v1::SealMemoryRequest seal;
  seal.set_memory_id(allocated.response.memory_id());
  const UniqueFd file = FetchDescriptor(fd_socket(), allocated.response.fd_ticket());
  client_.Call(&MemoryStub::SealMemory, seal);
  v1::CreateMrRequest region;
  region.set_pd_id(pd_id_);
  const uint64_t mr_id = client_.Call(&MemoryStub::CreateMr, region).response.mr_id();
  v1::CreateCqRequest queue;
  queue.set_adapter_id(adapter_id_);
  queue.set_cq_depth(64);
  const uint64_t cq_id = client_.Call(&QueueStub::CreateCq, queue).response.cq_id();
  v1::CreateQpRequest pair;
  pair.set_pd_id(pd_id_);
  pair.set_receive_cq_id(cq_id);
  pair.set_initiator_cq_id(cq_id);
  pair.set_receive_queue_depth(16);
  pair.set_initiator_queue_depth(16);
  const uint64_t qp_id = client_.Call(&QueueStub::CreateQp, pair).response.qp_id();
  objects_ = {allocated.response.memory_id(), mr_id, cq_id, qp_id};
}

void RingAttacker::Reopen() {
  v1::CloseRingRequest close;
  close.set_ring_id(ring_->id());
  client_.Call(&RingStub::CloseRing, close);
  if (std::unique_ptr<RawRing> opened = RawRing::Open(client_, fd_socket()); opened != nullptr) {
    StopDisturbing();
    ring_ = std::move(opened);
    tail_ = 0;
  }
}

bool RingAttacker::HasEnded() { return ring::LoadAcquire(ring_->header().end_reason) != 0; }

uint32_t RingAttacker::Edge() {
  const uint32_t payload = ring_->description().payload_bytes;
  const uint32_t edges[] = {0, 1, 8, payload - 8, payload, payload + 8, UINT32_MAX - 7, UINT32_MAX, Any()};
  return edges[Below(std::size(edges))];
}

ring::Submission RingAttacker::SomeEntry() {
  ring::Submission entry = {.opcode = static_cast<ring::Opcode>(Below(7)),
                            .count = static_cast<uint32_t>(Below(4)),
                            .object = Below(2) == 0 ? objects_[Below(objects_.size())] : Any(),
                            .length = kMemoryBytes};
  entry.payload_bytes = 512;
  entry.result_bytes = 512;
  return entry;
}

void RingAttacker::FillPayload() { FillRandom(ring_->payload().first(1024), dice_); }

void RingAttacker::Submit(const ring::Submission& entry) {
  ring_->WriteEntry(tail_, entry);
  ring::StoreInOrder(ring_->header().submission_tail, ++tail_);
  ring_->RingDoorbell();
}

void RingAttacker::ReadOutcomes() {
  ring::StoreInOrder(ring_->header().completion_head, ring::LoadAcquire(ring_->header().completion_tail));
}

void RingAttacker::SubmitNops(uint32_t count) {
  for (uint32_t index = 0; index < count; ++index) {
    ReadOutcomes();
    if (tail_ - ring::LoadAcquire(ring_->header().completion_head) < ring_->description().entries) {
      Submit({});
    }
  }
}

void RingAttacker::DisturbWith(void (*disturb)(RawRing& ring, uint32_t random)) {
  if (disturber_.joinable()) {
    return;
  }
  calm_.store(false);
  disturber_ = std::thread([this, disturb, seed = dice_()] {
    std::mt19937 dice(static_cast<uint32_t>(seed));
    while (!calm_.load()) {
      disturb(*ring_, static_cast<uint32_t>(dice()));
    }
  });
}

void RingAttacker::StopDisturbing() {
  calm_.store(true);
  if (disturber_.joinable()) {
    disturber_.join();
  }
}

}  // namespace rnicd::test
