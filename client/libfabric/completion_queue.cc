#include "client/libfabric/completion_queue.h"

#include <rdma/fi_errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "client/libfabric/completion.h"
#include "client/libfabric/errors.h"
#include "client/libfabric/provider.h"
#include "client/libfabric/waiting.h"

namespace rnicd::fi {
namespace {

// Entries that a queue is made with, and up to which it can grow as endpoints are enabled: programs ask for as many as
// all peers of a job could use, which are pages that the daemon counts.
constexpr uint32_t kDepthMin = 1024;
constexpr uint32_t kDepthMax = 65536;
// Completions that are polled at a time.
constexpr uint32_t kBatch = 32;
// Reads in a row without a completion after which the daemon's events are looked at, too. That is a system call.
constexpr uint32_t kEmptyReads = 128;

// Connected endpoints know no addresses.
ssize_t WithoutSources(ssize_t read, fi_addr_t* sources) {
  if (read > 0 && sources != nullptr) {
    std::fill_n(sources, read, FI_ADDR_NOTAVAIL);
  }
  return read;
}

}  // namespace

// The program's array.
class CompletionQueue::Writer {
 public:
  Writer(void* buffer, size_t capacity, fi_cq_format format)
      : to_(static_cast<std::byte*>(buffer)), capacity_(capacity), format_(format) {}

  size_t written() const { return written_; }
  size_t room() const { return capacity_ - written_; }
  void Write(const fi_cq_err_entry& entry) { WriteEntry(entry, format_, to_ + written_++ * EntryBytes(format_)); }

 private:
  std::byte* const to_;
  const size_t capacity_;
  const fi_cq_format format_;
  size_t written_ = 0;
};

CompletionQueue::CompletionQueue(Domain& domain, const fi_cq_attr& attributes)
    : domain_(domain), format_(attributes.format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : attributes.format) {
  static fi_ops fid_operations = FidOperations(CloseFid, Unsupported, Control);
  static fi_ops_cq operations = {.size = sizeof(fi_ops_cq),
                                 .read = Read,
                                 .readfrom = ReadFrom,
                                 .readerr = ReadError,
                                 .sread = WaitAndRead,
                                 .sreadfrom = WaitAndReadFrom,
                                 .signal = Signal,
                                 .strerror = Text};
  handle_.api = {.fid = {.fclass = FI_CLASS_CQ, .context = nullptr, .ops = &fid_operations}, .ops = &operations};
  handle_.object = this;
}

int CompletionQueue::Open(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context) {
  if (attributes == nullptr || attributes->format > FI_CQ_FORMAT_TAGGED) {
    return -FI_EINVAL;
  }
  if (!IsWaitObject(attributes->wait_obj)) {
    return -FI_ENOSYS;
  }
  Domain& owner = Domain::Of(&domain->fid);
  auto card = RNICD_INIT(rnicd_adapter_info);
  if (const int result = rnicd_query_adapter(owner.session(), &card); result < 0) {
    return Refused(FI_LOG_CQ, "the adapter's limits", result);
  }
  std::unique_ptr<CompletionQueue> made(new CompletionQueue(owner, *attributes));
  made->depth_ = std::min(kDepthMin, card.max_cq_depth);
  made->depth_max_ = std::min(kDepthMax, card.max_cq_depth);
  if (const int result = rnicd_create_cq(owner.session(), made->depth_, made->depth_max_, &made->cq_); result < 0) {
    return Refused(FI_LOG_CQ, "creating a completion queue", result);
  }
  if (attributes->wait_obj != FI_WAIT_NONE) {
    if (const int result = made->MakeWaitObject(); result < 0) {
      rnicd_close_cq(made->cq_);
      return result;
    }
  }
  owner.AddUser();
  made->handle_.api.fid.context = context;
  attributes->format = made->format_;
  *queue = &made.release()->handle_.api;
  return 0;
}

int CompletionQueue::MakeWaitObject() {
  const int completions = rnicd_cq_fd(cq_);
  if (completions < 0) {
    return Refused(FI_LOG_CQ, "a descriptor to wait for completions", completions);
  }
  wait_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  signal_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  for (const int fd : {completions, domain_.descriptor(), signal_.get()}) {
    epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    if (epoll_ctl(wait_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return -errno;
    }
  }
  return 0;
}

int CompletionQueue::CloseFid(fid* queue) {
  CompletionQueue& own = Of(queue);
  {
    MutexLock lock(own.mutex_);
    if (std::ranges::any_of(own.reporters_, [](const Reporter& reporter) { return !reporter.closed; })) {
      return -FI_EBUSY;
    }
  }
  const std::unique_ptr<CompletionQueue> closed(&own);
  rnicd_close_cq(closed->cq_);
  closed->domain_.RemoveUser();
  return 0;
}

int CompletionQueue::Control(fid* queue, int command, void* argument) {
  return ControlWaitObject(Of(queue).wait_.get(), command, argument);
}

int CompletionQueue::Reserve(uint32_t entries) {
  MutexLock lock(mutex_);
  const uint32_t wanted = reserved_ + entries;
  if (wanted > depth_max_) {
    RNICD_FI_WARN(FI_LOG_CQ, "%u completions could be outstanding, and a queue holds at most %u\n", wanted, depth_max_);
    return -FI_ENOSPC;
  }
  if (wanted > depth_) {
    const uint32_t depth = std::min(std::max(wanted, 2 * depth_), depth_max_);
    if (const int result = rnicd_resize_cq(cq_, depth); result < 0) {
      return Refused(FI_LOG_CQ, "a longer completion queue", result);
    }
    depth_ = depth;
  }
  reserved_ = wanted;
  return 0;
}

void CompletionQueue::Release(uint32_t entries) {
  MutexLock lock(mutex_);
  reserved_ -= entries;
}

void CompletionQueue::Add(std::shared_ptr<Transfers> transfers, RequestQueue& queue, uint32_t entries) {
  MutexLock lock(mutex_);
  reporters_.push_back({.transfers = std::move(transfers), .queue = queue, .entries = entries});
}

void CompletionQueue::Close(const Transfers& transfers) {
  MutexLock lock(mutex_);
  for (Reporter& reporter : reporters_) {
    reporter.closed |= reporter.transfers.get() == &transfers;
  }
  ForgetDrained();
}

ssize_t CompletionQueue::Read(fid_cq* queue, void* buffer, size_t count) {
  CompletionQueue& own = Of(&queue->fid);
  MutexLock lock(own.mutex_);
  Writer out(buffer, count, own.format_);
  while (!own.pending_.empty() && own.pending_.front().err == 0 && out.room() != 0) {
    out.Write(own.pending_.front());
    own.pending_.pop_front();
  }
  const int result = own.pending_.empty() ? own.Poll(out) : 0;
  if (out.written() != 0) {
    return static_cast<ssize_t>(out.written());
  }
  if (result < 0) {
    return result;
  }
  return own.pending_.empty() ? -FI_EAGAIN : -FI_EAVAIL;
}

ssize_t CompletionQueue::ReadFrom(fid_cq* queue, void* buffer, size_t count, fi_addr_t* sources) {
  return WithoutSources(Read(queue, buffer, count), sources);
}

int CompletionQueue::Poll(Writer& out) {
  if (empty_reads_ >= kEmptyReads) {
    empty_reads_ = 0;
    domain_.Progress();
    // The peer may need this processor.
    sched_yield();
  }
  std::array<rnicd_completion, kBatch> completions;
  while (out.room() != 0 && pending_.empty()) {
    const auto wanted = static_cast<uint32_t>(std::min<size_t>(out.room(), kBatch));
    const int count = rnicd_poll_cq(cq_, completions.data(), wanted);
    if (count < 0) {
      return FailAll(-count) ? 0 : count;
    }
    if (count == 0) {
      break;
    }
    empty_reads_ = 0;
    for (int index = 0; index < count; ++index) {
      Take(completions[index], out);
    }
  }
  if (out.written() == 0 && pending_.empty()) {
    ++empty_reads_;
  }
  return 0;
}

void CompletionQueue::Take(const rnicd_completion& completion, Writer& out) {
  if (completion.context == kDroppedContext) {
    return;
  }
  // Alive: it has an outstanding request.
  auto& transfers = *reinterpret_cast<Transfers*>(completion.qp_context);  // NOLINT(performance-no-int-to-ptr)
  const bool received = completion.operation == RNICD_RECEIVE || completion.operation == RNICD_RECEIVE_AND_INVALIDATE;
  RequestQueue& queue = received ? transfers.receive : transfers.transmit;
  const size_t index = completion.context & ~kFirstOfTwo;
  Request& request = queue[index];
  const bool failed = completion.ntstatus != 0;
  const fi_cq_err_entry entry = EntryOf(request, completion, received ? &transfers.ReceiveHeader(index) : nullptr);
  const bool reports = failed || entry.err != 0 ? !std::exchange(request.failed, true) : request.reports_success;
  if (reports) {
    if (entry.err == 0 && pending_.empty()) {
      out.Write(entry);
    } else {
      pending_.push_back(entry);
    }
  }
  if ((completion.context & kFirstOfTwo) != 0) {
    return;
  }
  queue.End(index);
  if (received && transfers.receive_batch.waiting() != 0) {
    MutexLock lock(transfers.receive.mutex);
    transfers.receive_batch.PostIfFew(queue.outstanding());
  }
  if (closing_) {
    ForgetDrained();
  }
}

void CompletionQueue::ForgetDrained() {
  closing_ = false;
  std::erase_if(reporters_, [this](const Reporter& reporter) RNICD_REQUIRES(mutex_) {
    const bool over = reporter.closed && reporter.queue.outstanding() == 0;
    reserved_ -= over ? reporter.entries : 0;
    closing_ |= reporter.closed && !over;
    return over;
  });
}

bool CompletionQueue::FailAll(int error) {
  const uint32_t reason = rnicd_last_error()->reason;
  const auto fail = [&](bool transmits) RNICD_REQUIRES(mutex_) {
    for (const Reporter& reporter : reporters_) {
      if (reporter.transmits() == transmits) {
        MutexLock lock(reporter.queue.mutex);
        Lose(reporter.queue.EndAll(), error, reason);
      }
    }
  };
  fail(true);
  const bool transmits = !pending_.empty();
  fail(false);
  return transmits;
}

void CompletionQueue::Lose(const std::vector<Request>& requests, int error, uint32_t reason) {
  for (const Request& request : requests) {
    if (!request.failed) {
      pending_.push_back(EntryOfLostRequest(request, error, reason));
    }
  }
}

ssize_t CompletionQueue::ReadError(fid_cq* queue, fi_cq_err_entry* error, uint64_t /*flags*/) {
  CompletionQueue& own = Of(&queue->fid);
  MutexLock lock(own.mutex_);
  if (own.pending_.empty() || own.pending_.front().err == 0) {
    return -FI_EAGAIN;
  }
  // There is no data beside the reason; the buffer for it is the program's. What follows is not in the struct of
  // programs for older interfaces, and newer ones have set it.
  std::memcpy(error, &own.pending_.front(), offsetof(fi_cq_err_entry, err_data));
  error->err_data_size = 0;
  own.pending_.pop_front();
  return 1;
}

int CompletionQueue::TryWait() {
  domain_.Progress();
  {
    MutexLock lock(mutex_);
    if (!pending_.empty()) {
      return -FI_EAGAIN;
    }
  }
  const int prepared = rnicd_prepare_cq(cq_);
  return prepared == 1 ? 0 : -FI_EAGAIN;
}

ssize_t CompletionQueue::WaitAndRead(fid_cq* queue, void* buffer, size_t count, const void* /*condition*/,
                                     int timeout_ms) {
  CompletionQueue& own = Of(&queue->fid);
  if (!own.wait_.valid()) {
    return -FI_ENOSYS;
  }
  const Deadline deadline(timeout_ms);
  for (;;) {
    const ssize_t read = Read(queue, buffer, count);
    if (read != -FI_EAGAIN) {
      return read;
    }
    if (own.TryWait() != 0) {
      continue;
    }
    const int result = deadline.Wait(own.wait_.get());
    eventfd_t signals = 0;
    if (result == 0 || eventfd_read(own.signal_.get(), &signals) == 0) {
      return Read(queue, buffer, count);
    }
    if (result < 0) {
      return -errno;
    }
  }
}

ssize_t CompletionQueue::WaitAndReadFrom(fid_cq* queue, void* buffer, size_t count, fi_addr_t* sources,
                                         const void* condition, int timeout_ms) {
  return WithoutSources(WaitAndRead(queue, buffer, count, condition, timeout_ms), sources);
}

int CompletionQueue::Signal(fid_cq* queue) {
  const CompletionQueue& own = Of(&queue->fid);
  return own.signal_.valid() && eventfd_write(own.signal_.get(), 1) == 0 ? 0 : -FI_ENOSYS;
}

const char* CompletionQueue::Text(fid_cq* /*queue*/, int reason, const void* /*data*/, char* buffer, size_t bytes) {
  return GiveText(rnicd_reason_name(static_cast<uint32_t>(reason)), buffer, bytes);
}

}  // namespace rnicd::fi
