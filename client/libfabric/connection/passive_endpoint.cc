#include "client/libfabric/connection/passive_endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <memory>

#include "client/libfabric/connection/event_queue.h"
#include "client/libfabric/connection/passive_endpoint_ops.h"
#include "client/libfabric/connection/rendezvous.h"
#include "client/libfabric/connection/requests.h"
#include "client/libfabric/connection/socket_address.h"
#include "client/libfabric/limits.h"

namespace rnicd::fi {

int PassiveEndpoint::Open(fi_info* info, fid_pep** endpoint, void* context) {
  fi_info* copy = info == nullptr ? nullptr : fi_dupinfo(info);
  if (copy == nullptr) {
    return info == nullptr ? -FI_EINVAL : -FI_ENOMEM;
  }
  auto* opened = new PassiveEndpoint(copy, context);
  *endpoint = &opened->handle_.pep;
  return 0;
}

PassiveEndpoint::PassiveEndpoint(fi_info* info, void* context) : info_(info) {
  handle_.pep.fid.fclass = FI_CLASS_PEP;
  handle_.pep.fid.context = context;
  handle_.pep.fid.ops = FidOps();
  handle_.pep.ops = EndpointOps();
  handle_.pep.cm = ConnectionOps();
  handle_.endpoint = this;
  if (!LoadAddress(info->src_addr, info->src_addrlen, &wanted_)) {
    wanted_ = {};
    wanted_.ss_family = info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
  }
}

PassiveEndpoint::~PassiveEndpoint() {
  requests_.reset();
  if (queue_ != nullptr) {
    queue_->Forget(handle_.pep.fid);
    queue_->Unbind();
  }
  fi_freeinfo(info_);
}

PassiveEndpoint* PassiveEndpoint::Of(fid* fid) {
  const bool is_one = fid != nullptr && fid->fclass == FI_CLASS_PEP && fid->ops == FidOps();
  return is_one ? reinterpret_cast<Handle*>(fid)->endpoint : nullptr;
}

int PassiveEndpoint::Close(fid* endpoint) {
  delete Of(endpoint);
  return 0;
}

int PassiveEndpoint::Bind(fid* endpoint, fid* to, uint64_t /*flags*/) {
  PassiveEndpoint& self = *Of(endpoint);
  if (to == nullptr || to->fclass != FI_CLASS_EQ || self.queue_ != nullptr) {
    return -FI_EINVAL;
  }
  self.queue_ = &EventQueue::Of(to);
  self.queue_->Bind();
  return 0;
}

int PassiveEndpoint::Control(fid* endpoint, int command, void* argument) {
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

int PassiveEndpoint::GetOption(fid* /*endpoint*/, int level, int name, void* value, size_t* bytes) {
  if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE) {
    return -FI_ENOPROTOOPT;
  }
  if (*bytes < sizeof(size_t)) {
    return -FI_ETOOSMALL;
  }
  *static_cast<size_t*>(value) = kConnectDataMax;
  *bytes = sizeof(size_t);
  return 0;
}

int PassiveEndpoint::SetName(fid* endpoint, void* address, size_t bytes) {
  PassiveEndpoint& self = *Of(endpoint);
  sockaddr_storage wanted;
  if (self.requests_ != nullptr || !LoadAddress(address, bytes, &wanted)) {
    return -FI_EINVAL;
  }
  self.wanted_ = wanted;
  self.listener_.reset();
  return self.TakeName();
}

int PassiveEndpoint::GetName(fid* endpoint, void* address, size_t* bytes) {
  const PassiveEndpoint& self = *Of(endpoint);
  return StoreAddress(self.listener_ == nullptr ? self.wanted_ : self.listener_->address(), address, bytes);
}

int PassiveEndpoint::TakeName() { return listener_ == nullptr ? Listener::Open(wanted_, &listener_) : 0; }

int PassiveEndpoint::Listen(fid_pep* endpoint) {
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

int PassiveEndpoint::Reject(fid_pep* endpoint, fid* request, const void* data, size_t bytes) {
  PassiveEndpoint& self = *Of(&endpoint->fid);
  const auto* first = static_cast<const std::byte*>(data);
  return self.requests_ == nullptr ? -FI_EINVAL : self.requests_->Reject(request, {first, bytes});
}

bool PassiveEndpoint::GetBoundAddress(sockaddr_storage* address) const {
  if (listener_ == nullptr) {
    return false;
  }
  *address = listener_->address();
  return true;
}

int OpenPassiveEndpoint(fid_fabric* /*fabric*/, fi_info* info, fid_pep** endpoint, void* context) {
  return PassiveEndpoint::Open(info, endpoint, context);
}

bool BoundAddress(fid* handle, sockaddr_storage* address) {
  const PassiveEndpoint* endpoint = PassiveEndpoint::Of(handle);
  return endpoint != nullptr && endpoint->GetBoundAddress(address);
}

}  // namespace rnicd::fi
