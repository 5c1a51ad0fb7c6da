#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "client/c/rnicd.h"
#include "client/libfabric/limits.h"
#include "client/libfabric/receive_batch.h"

namespace rnicd::fi {

// What is in front of each message, since NDK has no immediate data: it carries libfabric's "CQ data", and tells of a
// write. In the byte order of the two hosts, which share one architecture.
struct MessageHeader {
  enum Kind : uint32_t { kMessage = 0, kMessageWithData = 1, kWriteWithData = 2 };

  uint32_t kind;
  // Bytes that were written before; of kWriteWithData only.
  uint32_t written_bytes;
  uint64_t data;
};
static_assert(sizeof(MessageHeader) == kHeaderBytes);

// Contexts of posted requests are their places in a RequestQueue. Context of completions that nobody is told of.
inline constexpr uint64_t kDroppedContext = ~uint64_t{0};
// Bit of the context of a request that is completed by the next one, unless it fails.
inline constexpr uint64_t kFirstOfTwo = uint64_t{1} << 62;

// A posted request whose completion is not polled yet.
struct Request {
  // What the program gets with the completion.
  void* context = nullptr;
  uint64_t flags = 0;
  void* buffer = nullptr;
  size_t bytes = 0;
  // Whether success is reported, too.
  bool reports_success = true;
  // Whether its failure is reported already: a write with data can fail twice.
  bool failed = false;
  // Whether its completion has not been polled.
  bool outstanding = false;
};

// The outstanding requests of one queue, in the order in which they were posted. One thread at a time posts, and one
// polls.
class RequestQueue {
 public:
  explicit RequestQueue(size_t size) : requests_(size) {}

  // Held while posting. Taken after the mutex of a completion queue.
  Mutex mutex;

  size_t size() const { return requests_.size(); }
  size_t outstanding() const { return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire); }
  // The place of a completed request. Reading the tail orders this behind the thread that posted it, of which the
  // language knows nothing where the request went by way of the daemon.
  Request& operator[](size_t index) {
    static_cast<void>(tail_.load(std::memory_order_acquire));
    return requests_[index];
  }

  // Takes the next place: before the request is posted, since it may complete at once. False if there is none.
  bool Take(const Request& request, size_t* index);
  // Gives the last one back: the request was refused.
  void GiveBack();
  // Its completion is polled.
  void End(size_t index);

  // Ends all outstanding requests. Nobody posts meanwhile.
  std::vector<Request> EndAll();

 private:
  std::vector<Request> requests_;
  // Numbers of the oldest request and of the next one, modulo 2^64.
  std::atomic<size_t> head_ = 0;
  std::atomic<size_t> tail_ = 0;
};

// What the completions of one endpoint refer to. Shared by the endpoint and its completion queues: requests that are
// flushed when the endpoint closes are reported afterwards.
class Transfers {
 public:
  // Errors: those of rnicd_provision.
  static int Make(rnicd_session* session, size_t transmit_size, size_t receive_size, std::shared_ptr<Transfers>* made);
  ~Transfers();

  RequestQueue transmit;
  RequestQueue receive;
  ReceiveBatch receive_batch;

  // Registered room for the header of each request.
  MessageHeader& TransmitHeader(size_t index) { return headers_[index]; }
  MessageHeader& ReceiveHeader(size_t index) { return headers_[transmit.size() + index]; }
  rnicd_sge HeaderSge(const MessageHeader& header) const;

 private:
  Transfers(size_t transmit_size, size_t receive_size) : transmit(transmit_size), receive(receive_size) {}

  rnicd_memory* memory_ = nullptr;
  rnicd_mr* region_ = nullptr;
  MessageHeader* headers_ = nullptr;
  uint32_t token_ = 0;
};

}  // namespace rnicd::fi
