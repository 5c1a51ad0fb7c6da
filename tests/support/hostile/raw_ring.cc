#include "tests/support/hostile/raw_ring.h"

#include <unistd.h>

#include <cstring>
#include <utility>

#include "tests/support/calls/fd_exchange.h"

namespace rnicd::test {

UniqueFd FetchDescriptor(const std::string& fd_socket, const std::string& ticket) {
  FdAnswer answer = FetchFd(fd_socket, ticket);
  return answer.ok() && answer.descriptors.size() == 1 ? std::move(answer.descriptors.front()) : UniqueFd();
}

std::unique_ptr<RawRing> RawRing::Open(RawClient& client, const std::string& fd_socket, uint32_t entries) {
  v1::OpenRingRequest request;
  request.set_entries(entries);
  const auto opened = client.Call(&RingStub::OpenRing, request);
  if (!opened.ok()) {
    return nullptr;
  }
  std::unique_ptr<RawRing> ring(new RawRing);
  ring->id_ = opened.response.ring_id();
  ring->memory_ = FetchDescriptor(fd_socket, opened.response.memory_ticket());
  ring->doorbell_ = FetchDescriptor(fd_socket, opened.response.doorbell_ticket());
  ring->pipe_ = FetchDescriptor(fd_socket, opened.response.pipe_ticket());
  const bool mapped = ring->Map(opened.response.file_bytes());
  return mapped && ring->doorbell_.valid() && ring->pipe_.valid() ? std::move(ring) : nullptr;
}

std::unique_ptr<RawRing> RawRing::Adopt(UniqueFd memory, UniqueFd doorbell, uint64_t file_bytes) {
  std::unique_ptr<RawRing> ring(new RawRing);
  ring->memory_ = std::move(memory);
  ring->doorbell_ = std::move(doorbell);
  return ring->Map(file_bytes) ? std::move(ring) : nullptr;
}

bool RawRing::Map(uint64_t file_bytes) {
  mapping_ = std::make_unique<SharedMapping>(memory_.get(), file_bytes);
  if (bytes().empty()) {
    return false;
  }
  std::memcpy(&description_, bytes().data(), sizeof(description_));
  return true;
}

void RawRing::WriteEntry(uint32_t number, const ring::Submission& entry) const {
  const size_t slot = number & (description_.entries - 1);
  std::memcpy(bytes().data() + description_.submission_offset + slot * ring::kEntryBytes, &entry, sizeof(entry));
}

void RawRing::RingDoorbell() const {
  const uint64_t one = 1;
  (void)!write(doorbell_.get(), &one, sizeof(one));
}

}  // namespace rnicd::test
