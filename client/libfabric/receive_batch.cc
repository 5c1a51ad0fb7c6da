#include "client/libfabric/receive_batch.h"

#include <rdma/fi_errno.h>

namespace rnicd::fi {
namespace {

constexpr size_t kReceiveBatch = 16;
// More than the peer can consume while a batch is posted.
constexpr size_t kFew = 32;

}  // namespace

int ReceiveBatch::Open(rnicd_qp* qp, bool batches) {
  qp_ = qp;
  batches_ = batches;
  return rnicd_create_chain(&chain_);
}

void ReceiveBatch::Close() {
  if (waiting() != 0) {
    Post();
  }
  qp_ = nullptr;
}

int ReceiveBatch::Add(const rnicd_sge* sges, uint32_t count, uint64_t context, size_t outstanding) {
  if (waiting() == 0) {
    rnicd_reset_chain(chain_);
  }
  rnicd_chain_receive(chain_, sges, count, context);
  waiting_.store(waiting() + 1, std::memory_order_relaxed);
  return !batches_ || waiting() >= kReceiveBatch ? Post() : PostIfFew(outstanding);
}

int ReceiveBatch::PostIfFew(size_t outstanding) {
  return qp_ != nullptr && waiting() != 0 && outstanding - waiting() <= kFew ? Post() : 0;
}

int ReceiveBatch::Post() {
  const int result = rnicd_post_without_outcome(qp_, chain_);
  if (result == -FI_EAGAIN && batches_) {
    return 0;
  }
  waiting_.store(0, std::memory_order_relaxed);
  return result;
}

}  // namespace rnicd::fi
