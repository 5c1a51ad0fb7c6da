#include "client/libfabric/transfers.h"

#include <utility>

#include "client/libfabric/errors.h"

namespace rnicd::fi {

bool RequestQueue::Take(const Request& request, size_t* index) {
  const size_t tail = tail_.load(std::memory_order_relaxed);
  if (tail - head_.load(std::memory_order_acquire) == size()) {
    return false;
  }
  *index = tail % size();
  requests_[*index] = request;
  requests_[*index].outstanding = true;
  tail_.store(tail + 1, std::memory_order_release);
  return true;
}

void RequestQueue::GiveBack() { tail_.store(tail_.load(std::memory_order_relaxed) - 1, std::memory_order_release); }

void RequestQueue::End(size_t index) {
  requests_[index].outstanding = false;
  size_t head = head_.load(std::memory_order_relaxed);
  while (head != tail_.load(std::memory_order_acquire) && !requests_[head % size()].outstanding) {
    ++head;
  }
  head_.store(head, std::memory_order_release);
}

std::vector<Request> RequestQueue::EndAll() {
  std::vector<Request> ended;
  for (size_t at = head_; at != tail_; ++at) {
    if (Request& request = requests_[at % size()]; std::exchange(request.outstanding, false)) {
      ended.push_back(request);
    }
  }
  head_.store(tail_, std::memory_order_release);
  return ended;
}

int Transfers::Make(rnicd_session* session, size_t transmit_size, size_t receive_size,
                    std::shared_ptr<Transfers>* made) {
  constexpr uint64_t kUnit = 4096;
  const std::shared_ptr<Transfers> transfers(new Transfers(transmit_size, receive_size));
  auto options = RNICD_INIT(rnicd_memory_options);
  const uint64_t bytes = (transmit_size + receive_size) * kHeaderBytes;
  options.bytes = (bytes + kUnit - 1) / kUnit * kUnit;
  options.page_size = kUnit;
  const rnicd_range all = {.offset = 0, .length = bytes, .flags = RNICD_MR_LOCAL_WRITE, .reserved = 0};
  if (const int result = rnicd_provision(session, &options, &all, 1, &transfers->memory_, &transfers->region_);
      result < 0) {
    return Refused(FI_LOG_EP_CTRL, "memory for the headers of messages", result);
  }
  auto memory = RNICD_INIT(rnicd_memory_info);
  auto region = RNICD_INIT(rnicd_mr_info);
  rnicd_query_memory(transfers->memory_, &memory);
  rnicd_query_mr(transfers->region_, &region);
  transfers->headers_ = static_cast<MessageHeader*>(memory.address);
  transfers->token_ = region.local_token;
  *made = transfers;
  return 0;
}

Transfers::~Transfers() {
  rnicd_close_mr(region_);
  rnicd_close_memory(memory_);
}

rnicd_sge Transfers::HeaderSge(const MessageHeader& header) const {
  return {.address = reinterpret_cast<uintptr_t>(&header), .length = kHeaderBytes, .token = token_};
}

}  // namespace rnicd::fi
