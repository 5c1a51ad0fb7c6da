#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "client/c/rnicd.h"

namespace rnicd::fi {

// Receives of an endpoint that wait to be posted together: each post may have to wake the daemon, and nobody needs it
// while many others are posted. The caller serializes all but waiting().
class ReceiveBatch {
 public:
  ReceiveBatch() = default;
  ReceiveBatch(const ReceiveBatch&) = delete;
  ReceiveBatch& operator=(const ReceiveBatch&) = delete;
  ~ReceiveBatch() { rnicd_close_chain(chain_); }

  // `batches`: false posts each receive at once.
  // Errors: -FI_ENOMEM.
  int Open(rnicd_qp* qp, bool batches);
  // Posts what waits: the queue pair, which is about to be closed, flushes it.
  void Close();

  size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // `outstanding` counts this receive, and those that wait.
  // Errors: those of rnicd_post_without_outcome; then those that wait are lost with the session.
  int Add(const rnicd_sge* sges, uint32_t count, uint64_t context, size_t outstanding);
  // Posts what waits if so few others are posted that the peer could have to wait.
  int PostIfFew(size_t outstanding);

 private:
  int Post();

  rnicd_qp* qp_ = nullptr;
  rnicd_chain* chain_ = nullptr;
  bool batches_ = false;
  std::atomic<size_t> waiting_ = 0;
};

}  // namespace rnicd::fi
