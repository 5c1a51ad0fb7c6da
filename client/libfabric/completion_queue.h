#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "client/c/rnicd.h"
#include "client/libfabric/domain.h"
#include "client/libfabric/handle.h"
#include "client/libfabric/transfers.h"

namespace rnicd::fi {

// A completion queue (fi_cq(3)) in the formats CONTEXT, MSG, DATA and TAGGED; the wait object is a descriptor, where
// the daemon serves rings.
class CompletionQueue {
 public:
  // fi_ops_domain::cq_open.
  // Errors: -FI_ENOSYS another wait object; those of rnicd_create_cq.
  static int Open(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context);
  static CompletionQueue& Of(fid* queue) { return ObjectOf<fid_cq, CompletionQueue>(queue); }

  rnicd_cq* cq() const { return cq_; }
  bool in_shared_memory() const { return rnicd_cq_fd(cq_) >= 0; }

  // Makes room for the completions of an endpoint.
  // Errors: -FI_ENOSPC more than the card's queues hold; those of rnicd_resize_cq.
  int Reserve(uint32_t entries);
  void Release(uint32_t entries);
  // A queue of an endpoint reports here, with that many entries of room.
  void Add(std::shared_ptr<Transfers> transfers, RequestQueue& queue, uint32_t entries);
  // The endpoint is closed. Its flushed requests are reported before it is forgotten.
  void Close(const Transfers& transfers);

  // fi_trywait: 0 when the descriptor will become readable with the next completion, -FI_EAGAIN when there is one.
  int TryWait();

 private:
  struct Reporter {
    std::shared_ptr<Transfers> transfers;
    // One of the transfers'.
    RequestQueue& queue;
    uint32_t entries;
    bool closed = false;

    bool transmits() const { return &queue == &transfers->transmit; }
  };
  class Writer;

  CompletionQueue(Domain& domain, const fi_cq_attr& attributes);
  static int CloseFid(fid* queue);
  static int Control(fid* queue, int command, void* argument);
  static ssize_t Read(fid_cq* queue, void* buffer, size_t count);
  static ssize_t ReadFrom(fid_cq* queue, void* buffer, size_t count, fi_addr_t* sources);
  static ssize_t ReadError(fid_cq* queue, fi_cq_err_entry* error, uint64_t flags);
  static ssize_t WaitAndRead(fid_cq* queue, void* buffer, size_t count, const void* condition, int timeout_ms);
  static ssize_t WaitAndReadFrom(fid_cq* queue, void* buffer, size_t count, fi_addr_t* sources, const void* condition,
                                 int timeout_ms);
  static int Signal(fid_cq* queue);
  static const char* Text(fid_cq* queue, int reason, const void* data, char* buffer, size_t bytes);
  // The wait object; -1 without one.
  int MakeWaitObject();

  // Moves completions of the daemon's queue to `out`, and to pending_ from the first failure on.
  int Poll(Writer& out) RNICD_REQUIRES(mutex_);
  void Take(const rnicd_completion& completion, Writer& out) RNICD_REQUIRES(mutex_);
  void ForgetDrained() RNICD_REQUIRES(mutex_);
  // The session is over: everything outstanding ends. Whether transmits did: their errors then come before the queue's
  // own, and that before those of receives, which RxM keeps to itself.
  bool FailAll(int error) RNICD_REQUIRES(mutex_);
  void Lose(const std::vector<Request>& requests, int error, uint32_t reason) RNICD_REQUIRES(mutex_);

  Domain& domain_;
  Handle<fid_cq, CompletionQueue> handle_;
  rnicd_cq* cq_ = nullptr;
  const fi_cq_format format_;
  // An epoll of the queue's descriptor, the session's, and that of fi_cq_signal.
  UniqueFd wait_;
  UniqueFd signal_;
  uint32_t depth_ = 0;
  uint32_t depth_max_ = 0;
  Mutex mutex_;
  uint32_t reserved_ RNICD_GUARDED_BY(mutex_) = 0;
  std::list<Reporter> reporters_ RNICD_GUARDED_BY(mutex_);
  // Whether one of them is closed, and has requests whose completions are not polled.
  bool closing_ RNICD_GUARDED_BY(mutex_) = false;
  // What could not be written behind a failure, which the program must read first.
  std::deque<fi_cq_err_entry> pending_ RNICD_GUARDED_BY(mutex_);
  uint32_t empty_reads_ RNICD_GUARDED_BY(mutex_) = 0;
};

}  // namespace rnicd::fi
