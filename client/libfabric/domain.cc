#include "client/libfabric/domain.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <memory>

#include "client/libfabric/completion_queue.h"
#include "client/libfabric/endpoint.h"
#include "client/libfabric/errors.h"
#include "client/libfabric/info/info.h"
#include "client/libfabric/provider.h"

namespace rnicd::fi {
namespace {

int OpenEndpoint2(fid_domain* domain, fi_info* info, fid_ep** endpoint, uint64_t flags, void* context) {
  return flags != 0 ? -FI_EINVAL : Endpoint::Open(domain, info, endpoint, context);
}

}  // namespace

int Domain::Open(fid_fabric* /*fabric*/, fi_info* info, fid_domain** domain, void* context) {
  if (info == nullptr || info->domain_attr == nullptr) {
    return -FI_EINVAL;
  }
  std::unique_ptr<Domain> made(new Domain);
  auto options = RNICD_INIT(rnicd_session_options);
  options.label = "libfabric";
  options.adapter_name = AdapterOf(info->domain_attr->name);
  options.on_session_ended = OnSessionEnded;
  options.context = made.get();
  if (const int result = rnicd_open_session(&options, &made->session_); result < 0) {
    return Refused(FI_LOG_DOMAIN, "opening a session", result);
  }
  static fi_ops fid_operations = FidOperations(Close);
  static fi_ops_domain operations = {.size = sizeof(fi_ops_domain),
                                     .av_open = Unsupported,
                                     .cq_open = CompletionQueue::Open,
                                     .endpoint = Endpoint::Open,
                                     .scalable_ep = Unsupported,
                                     .cntr_open = Unsupported,
                                     .poll_open = Unsupported,
                                     .stx_ctx = Unsupported,
                                     .srx_ctx = Unsupported,
                                     .query_atomic = Unsupported,
                                     .query_collective = Unsupported,
                                     .endpoint2 = OpenEndpoint2};
  made->handle_.api = {.fid = {.fclass = FI_CLASS_DOMAIN, .context = context, .ops = &fid_operations},
                       .ops = &operations,
                       .mr = &MemoryOperations()};
  made->handle_.object = made.get();
  *domain = &made.release()->handle_.api;
  return 0;
}

int Domain::Close(fid* domain) {
  Domain& own = Of(domain);
  if (own.users_ != 0 || !own.memory_.Empty()) {
    return -FI_EBUSY;
  }
  const std::unique_ptr<Domain> closed(&own);
  // The outcome does not matter: the session may have ended before.
  rnicd_close_session(closed->session_, nullptr);
  return 0;
}

void Domain::Progress() {
  if (!in_progress_.exchange(true, std::memory_order_acquire)) {
    rnicd_progress(session_, 0);
    in_progress_.store(false, std::memory_order_release);
  }
}

void Domain::Add(Endpoint& endpoint) {
  MutexLock lock(mutex_);
  endpoints_.push_back(&endpoint);
}

void Domain::Remove(Endpoint& endpoint) {
  MutexLock lock(mutex_);
  std::erase(endpoints_, &endpoint);
}

void Domain::OnSessionEnded(void* context, const rnicd_error* why) {
  RNICD_FI_WARN(FI_LOG_DOMAIN, "the session has ended: %s (%s)\n", why->message, why->field);
  Domain& own = *static_cast<Domain*>(context);
  MutexLock lock(own.mutex_);
  for (Endpoint* const endpoint : own.endpoints_) {
    endpoint->OnSessionEnded();
  }
}

}  // namespace rnicd::fi
