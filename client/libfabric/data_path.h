#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "client/c/rnicd.h"
#include "client/libfabric/transfers.h"

namespace rnicd::fi {

// A message or an RMA request, as a program asks for it.
struct Operation {
  const iovec* buffers = nullptr;
  // What fi_mr_desc gave for each buffer; null where there are none.
  void* const* descriptors = nullptr;
  size_t count = 0;
  // FI_COMPLETION, FI_INJECT, FI_REMOTE_CQ_DATA, FI_FENCE. Others ask for nothing that is not so anyway.
  uint64_t flags = 0;
  void* context = nullptr;
  uint64_t data = 0;
  // RMA only.
  uint64_t remote_address = 0;
  uint64_t remote_key = 0;
};

// Flag of an operation, in a place of the provider's own: nothing is reported when it succeeds, nor when it fails
// (fi_inject).
inline constexpr uint64_t kUnreported = uint64_t{1} << 63;

// Posts the requests of one endpoint. Nothing waits for the daemon: what it refuses completes with an error.
class DataPath {
 public:
  // `selective_*`: successes are reported of operations with FI_COMPLETION only.
  struct Options {
    rnicd_cq* receive_cq;
    rnicd_cq* transmit_cq;
    size_t receive_size;
    size_t transmit_size;
    bool selective_receive;
    bool selective_transmit;
    // Whether the daemon is reached through shared memory.
    bool rings;
  };

  // Errors: those of rnicd_provision and rnicd_create_qp.
  static int Make(rnicd_session* session, const Options& options, std::unique_ptr<DataPath>* made);
  // Flushes: the transfers' completions are queued afterwards.
  ~DataPath();

  rnicd_qp* qp() const { return qp_; }
  const std::shared_ptr<Transfers>& transfers() const { return transfers_; }
  // Completions that can be queued at a time, of requests in each direction.
  static uint32_t TransmitDepth(const Options& options);
  static uint32_t ReceiveDepth(const Options& options) { return static_cast<uint32_t>(options.receive_size); }

  // 0, or -FI_EAGAIN while the queue is full; -FI_EINVAL, -FI_EMSGSIZE; -FI_EKEYREJECTED no region has that key; those
  // of rnicd_post_without_outcome.
  ssize_t Send(const Operation& operation);
  ssize_t Receive(const Operation& operation);
  ssize_t Read(const Operation& operation);
  ssize_t Write(const Operation& operation);

 private:
  struct Sges;

  DataPath(const Options& options, std::shared_ptr<Transfers> transfers);

  // Takes a place for a request, or decides that it is not reported; posts what `add` adds to the chain, with flags and
  // context.
  template <typename Add>
  ssize_t Transmit(const Operation& operation, uint64_t flags, size_t bytes, const Add& add);
  bool TakePlace(const Operation& operation, uint64_t flags, size_t bytes, uint64_t* context, uint32_t* post_flags)
      RNICD_REQUIRES(transfers_->transmit.mutex);
  void AddWrite(const Operation& operation, const Sges& sges, uint32_t flags, uint64_t context);

  const Options options_;
  const std::shared_ptr<Transfers> transfers_;
  size_t message_bytes_max_ = 0;
  rnicd_qp* qp_ = nullptr;
  rnicd_chain* transmit_chain_ = nullptr;
  // Silent requests since the last one that completes: only such a one tells that those before it are over.
  size_t silent_in_a_row_ RNICD_GUARDED_BY(transfers_->transmit.mutex) = 0;
};

}  // namespace rnicd::fi
