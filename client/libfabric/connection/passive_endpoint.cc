#include "client/libfabric/connection/passive_endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <memory>
#include <utility>

#include "client/libfabric/connection/event_queue.h"
#include "client/libfabric/connection/rendezvous.h"
#include "client/libfabric/connection/requests.h"
#include "client/libfabric/handle.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

// A passive endpoint (fid_pep). It takes its name at fi_setname or fi_listen, and has a queue before it listens.
// Threads: as fi_domain(3) asks of its user: calls for one endpoint come one after the other, but for fi_reject and
// what
//          the queue does.
class PassiveEndpoint {
 public:
  PassiveEndpoint(OwnedInfo info, void* context) : info_(std::move(info)) {
    handle_.api = {.fid = {.fclass = FI_CLASS_PEP, .context = context, .ops = FidOps()},
                   .ops = &EndpointOperations(),
                   .cm = ConnectionOps()};
    handle_.object = this;
    if (!LoadAddress(info_->src_addr, info_->src_addrlen, &wanted_)) {
      wanted_.ss_family = info_->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
    }
  }
  PassiveEndpoint(const PassiveEndpoint&) = delete;
  PassiveEndpoint& operator=(const PassiveEndpoint&) = delete;

  // Null for another object.
  static PassiveEndpoint* Of(fid* fid) {
    const bool is_one = fid != nullptr && fid->fclass == FI_CLASS_PEP && fid->ops == FidOps();
    return is_one ? &ObjectOf<fid_pep, PassiveEndpoint>(fid) : nullptr;
  }
  fid_pep* api() { return &handle_.api; }
  // Null before it has a name.
  const sockaddr_storage* bound() const { return listener_ != nullptr ? &listener_->address() : nullptr; }

 private:
  ~PassiveEndpoint() {
    requests_.reset();
    if (queue_ != nullptr) {
      queue_->Forget(handle_.api.fid);
      queue_->Unbind();
    }
  }

  // Also tells our endpoints from others.
  static fi_ops* FidOps() {
    static fi_ops operations = FidOperations(Close, Bind, Control);
    return &operations;
  }

  static fi_ops_cm* ConnectionOps() {
    static fi_ops_cm operations = {.size = sizeof(fi_ops_cm),
                                   .setname = SetName,
                                   .getname = GetName,
                                   .getpeer = Unsupported,
                                   .connect = Unsupported,
                                   .listen = Listen,
                                   .accept = Unsupported,
                                   .reject = Reject,
                                   .shutdown = Unsupported,
                                   .join = Unsupported};
    return &operations;
  }

  static int Close(fid* endpoint) {
    delete Of(endpoint);
    return 0;
  }

  static int Bind(fid* endpoint, fid* to, uint64_t /*flags*/) {
    PassiveEndpoint& self = *Of(endpoint);
    if (to == nullptr || to->fclass != FI_CLASS_EQ || self.queue_ != nullptr) {
      return -FI_EINVAL;
    }
    self.queue_ = &EventQueue::Of(to);
    self.queue_->Bind();
    return 0;
  }

  static int Control(fid* endpoint, int command, void* argument) {
    if (command != FI_BACKLOG) {
      return -FI_ENOSYS;
    }
    const int backlog = *static_cast<const int*>(argument);
    if (backlog <= 0) {
      return -FI_EINVAL;
    }
    Of(endpoint)->backlog_ = backlog;
    return 0;
  }

  static int SetName(fid* endpoint, void* address, size_t bytes) {
    PassiveEndpoint& self = *Of(endpoint);
    if (self.requests_ != nullptr || !LoadAddress(address, bytes, &self.wanted_)) {
      return -FI_EINVAL;
    }
    self.listener_.reset();
    return self.TakeName();
  }

  static int GetName(fid* endpoint, void* address, size_t* bytes) {
    const PassiveEndpoint& self = *Of(endpoint);
    return StoreAddress(self.bound() != nullptr ? *self.bound() : self.wanted_, address, bytes);
  }

  static int Listen(fid_pep* endpoint) {
    PassiveEndpoint& self = *Of(&endpoint->fid);
    if (self.queue_ == nullptr) {
      return -FI_ENOEQ;
    }
    if (self.requests_ != nullptr) {
      return -FI_EINVAL;
    }
    int result = self.TakeName();
    if (result == 0) {
      result = self.listener_->Listen(self.backlog_);
    }
    if (result == 0) {
      auto requests = std::make_unique<Requests>(*self.queue_, *self.listener_, endpoint->fid, *self.info_);
      result = requests->Start();
      self.requests_ = result == 0 ? std::move(requests) : nullptr;
    }
    return result;
  }

  static int Reject(fid_pep* endpoint, fid* request, const void* data, size_t bytes) {
    PassiveEndpoint& self = *Of(&endpoint->fid);
    const auto* first = static_cast<const std::byte*>(data);
    return self.requests_ == nullptr ? -FI_EINVAL : self.requests_->Reject(request, {first, bytes});
  }

  int TakeName() { return listener_ == nullptr ? Listener::Open(wanted_, &listener_) : 0; }

  Handle<fid_pep, PassiveEndpoint> handle_;
  const OwnedInfo info_;
  sockaddr_storage wanted_ = {};
  // The system has a limit of its own.
  int backlog_ = 4096;
  EventQueue* queue_ = nullptr;
  // Null without a name.
  std::unique_ptr<Listener> listener_;
  // Null before fi_listen. Ends before the listener, which it uses.
  std::unique_ptr<Requests> requests_;
};

}  // namespace

int OpenPassiveEndpoint(fid_fabric* /*fabric*/, fi_info* info, fid_pep** endpoint, void* context) {
  if (info == nullptr) {
    return -FI_EINVAL;
  }
  OwnedInfo copy(fi_dupinfo(info));
  if (copy == nullptr) {
    return -FI_ENOMEM;
  }
  *endpoint = (new PassiveEndpoint(std::move(copy), context))->api();
  return 0;
}

bool BoundAddress(fid* handle, sockaddr_storage* address) {
  const PassiveEndpoint* const endpoint = PassiveEndpoint::Of(handle);
  if (endpoint == nullptr || endpoint->bound() == nullptr) {
    return false;
  }
  *address = *endpoint->bound();
  return true;
}

}  // namespace rnicd::fi
