#include "client/libfabric/endpoint.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <cstring>

#include "client/libfabric/connection/passive_endpoint.h"
#include "client/libfabric/errors.h"
#include "client/libfabric/limits.h"
#include "client/libfabric/owned_pages.h"
#include "client/libfabric/provider.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

std::span<const std::byte> BytesOf(const void* data, size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

}  // namespace

// The tables of fi_ep, but those of the data path.
struct Endpoint::Operations {
  static int Close(fid* endpoint) {
    delete &Of(endpoint);
    return 0;
  }

  static int Bind(fid* endpoint, fid* queue, uint64_t flags) {
    Endpoint& own = Of(endpoint);
    if (own.data_path_ != nullptr) {
      return -FI_EOPBADSTATE;
    }
    switch (queue->fclass) {
      case FI_CLASS_EQ:
        return own.BindEvents(EventQueue::Of(queue));
      case FI_CLASS_CQ:
        return BindCompletions(own.bound_, CompletionQueue::Of(queue), flags);
      default:
        return -FI_ENOSYS;
    }
  }

  static int Control(fid* endpoint, int command, void* /*argument*/) {
    return command == FI_ENABLE ? Of(endpoint).Enable() : -FI_ENOSYS;
  }

  static int SetName(fid* endpoint, void* address, size_t bytes) {
    return LoadAddress(address, bytes, &Of(endpoint).own_address_) ? 0 : -FI_EINVAL;
  }

  static int GetName(fid* endpoint, void* address, size_t* bytes) {
    const Endpoint& own = Of(endpoint);
    return StoreAddress(own.connection_ != nullptr ? own.connection_->local() : own.own_address_, address, bytes);
  }

  static int GetPeer(fid_ep* endpoint, void* address, size_t* bytes) {
    const Endpoint& own = Of(&endpoint->fid);
    return own.connection_ != nullptr ? StoreAddress(own.connection_->peer(), address, bytes) : -FI_ENOTCONN;
  }

  static int Connect(fid_ep* endpoint, const void* address, const void* data, size_t bytes) {
    Endpoint& own = Of(&endpoint->fid);
    if (own.bound_.events == nullptr || own.connection_ != nullptr) {
      return -FI_EOPBADSTATE;
    }
    sockaddr_storage peer;
    if (bytes > kConnectDataMax || !LoadAddress(address, sizeof(peer), &peer)) {
      return -FI_EINVAL;
    }
    if (const int result = own.Enable(); result < 0) {
      return result;
    }
    return Connection::Connect(*own.bound_.events, own, peer, BytesOf(data, bytes), &own.connection_, own.own_address_);
  }

  static int Accept(fid_ep* endpoint, const void* data, size_t bytes) {
    Endpoint& own = Of(&endpoint->fid);
    if (own.bound_.events == nullptr || own.connection_ == nullptr) {
      return -FI_EOPBADSTATE;
    }
    if (bytes > kConnectDataMax) {
      return -FI_EINVAL;
    }
    const int result = own.Enable();
    return result < 0 ? result : own.connection_->Accept(*own.bound_.events, own, BytesOf(data, bytes));
  }

  static int Shutdown(fid_ep* endpoint, uint64_t /*flags*/) {
    Endpoint& own = Of(&endpoint->fid);
    if (own.connection_ == nullptr) {
      return -FI_ENOTCONN;
    }
    own.connection_->Shutdown();
    return 0;
  }

 private:
  static int BindCompletions(Bound& bound, CompletionQueue& queue, uint64_t flags) {
    const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
    if ((flags & FI_TRANSMIT) != 0) {
      bound.transmit = &queue;
      bound.selective_transmit = selective;
    }
    if ((flags & FI_RECV) != 0) {
      bound.receive = &queue;
      bound.selective_receive = selective;
    }
    return (flags & (FI_TRANSMIT | FI_RECV)) != 0 ? 0 : -FI_EINVAL;
  }
};

int Endpoint::BindEvents(EventQueue& events) {
  if (bound_.events != nullptr) {
    return -FI_EINVAL;
  }
  bound_.events = &events;
  events.Bind();
  return 0;
}

Endpoint::Endpoint(Domain& domain, OwnedInfo info, void* context) : domain_(domain), info_(std::move(info)) {
  static fi_ops fid_operations = FidOperations(Operations::Close, Operations::Bind, Operations::Control);
  static fi_ops_cm connecting = {.size = sizeof(fi_ops_cm),
                                 .setname = Operations::SetName,
                                 .getname = Operations::GetName,
                                 .getpeer = Operations::GetPeer,
                                 .connect = Operations::Connect,
                                 .listen = Unsupported,
                                 .accept = Operations::Accept,
                                 .reject = Unsupported,
                                 .shutdown = Operations::Shutdown,
                                 .join = Unsupported};
  handle_.api = {.fid = {.fclass = FI_CLASS_EP, .context = context, .ops = &fid_operations},
                 .ops = &EndpointOperations(),
                 .cm = &connecting,
                 .msg = &MessageOperations(),
                 .rma = &RmaOperations(),
                 .tagged = nullptr,
                 .atomic = nullptr,
                 .collective = nullptr};
  handle_.object = this;
  domain_.AddUser();
  domain_.Add(*this);
}

Endpoint::~Endpoint() {
  domain_.Remove(*this);
  connection_.reset();
  if (bound_.events != nullptr) {
    bound_.events->Forget(Fid());
    bound_.events->Unbind();
  }
  const std::shared_ptr<Transfers> transfers = data_path_ != nullptr ? data_path_->transfers() : nullptr;
  // From here on the completions of what was outstanding are queued.
  data_path_.reset();
  if (transfers != nullptr) {
    bound_.transmit->Close(*transfers);
    bound_.receive->Close(*transfers);
  }
  domain_.RemoveUser();
}

int Endpoint::Open(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) {
  if (info == nullptr || info->ep_attr == nullptr || info->ep_attr->type != FI_EP_MSG || info->tx_attr == nullptr ||
      info->rx_attr == nullptr) {
    return -FI_EINVAL;
  }
  OwnedInfo copy(fi_dupinfo(info));
  if (copy == nullptr) {
    return -FI_ENOMEM;
  }
  std::unique_ptr<Endpoint> made(new Endpoint(Domain::Of(&domain->fid), std::move(copy), context));
  LoadAddress(info->src_addr, info->src_addrlen, &made->own_address_);
  if (info->handle != nullptr) {
    made->connection_ = Connection::Take(info->handle);
    if (made->connection_ == nullptr && !BoundAddress(info->handle, &made->own_address_)) {
      return -FI_EINVAL;
    }
  }
  *endpoint = &made.release()->handle_.api;
  return 0;
}

int Endpoint::Enable() {
  if (data_path_ != nullptr) {
    return 0;
  }
  if (bound_.transmit == nullptr || bound_.receive == nullptr) {
    return -FI_ENOCQ;
  }
  // What RxM does next is to make a pool of receives.
  FillHolesOfTheHeap();
  const auto size = [](size_t asked) { return std::clamp<size_t>(asked, 1, kQueueSizeMax); };
  const DataPath::Options options = {.receive_cq = bound_.receive->cq(),
                                     .transmit_cq = bound_.transmit->cq(),
                                     .receive_size = size(info_->rx_attr->size),
                                     .transmit_size = size(info_->tx_attr->size),
                                     .selective_receive = bound_.selective_receive,
                                     .selective_transmit = bound_.selective_transmit,
                                     .rings = bound_.receive->in_shared_memory()};
  return ReserveAndAdd(options);
}

int Endpoint::ReserveAndAdd(const DataPath::Options& options) {
  const uint32_t transmits = DataPath::TransmitDepth(options);
  const uint32_t receives = DataPath::ReceiveDepth(options);
  if (const int result = bound_.transmit->Reserve(transmits); result < 0) {
    return result;
  }
  if (const int result = bound_.receive->Reserve(receives); result < 0) {
    bound_.transmit->Release(transmits);
    return result;
  }
  if (const int result = DataPath::Make(domain_.session(), options, &data_path_); result < 0) {
    bound_.transmit->Release(transmits);
    bound_.receive->Release(receives);
    return result;
  }
  qp_info_ = RNICD_INIT(rnicd_qp_info);
  rnicd_query_qp(data_path_->qp(), &qp_info_);
  const std::shared_ptr<Transfers>& transfers = data_path_->transfers();
  bound_.transmit->Add(transfers, transfers->transmit, transmits);
  bound_.receive->Add(transfers, transfers->receive, receives);
  return 0;
}

void Endpoint::OnSessionEnded() {
  if (bound_.events != nullptr) {
    bound_.events->ReportEnd(Fid());
  }
}

std::span<const std::byte> Endpoint::QueuePairAddress() const {
  return BytesOf(qp_info_.address, qp_info_.address_bytes);
}

int Endpoint::ConnectQueuePair(std::span<const std::byte> address) {
  const int result = rnicd_connect_qp(data_path_->qp(), address.data(), address.size());
  return result < 0 ? Refused(FI_LOG_EP_CTRL, "connecting the queue pair", result) : 0;
}

void Endpoint::OnPeerGone() {
  if (data_path_ != nullptr) {
    rnicd_flush_qp(data_path_->qp());
  }
}

}  // namespace rnicd::fi
