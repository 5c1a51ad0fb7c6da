#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <span>

#include "client/libfabric/completion_queue.h"
#include "client/libfabric/connection/connectable.h"
#include "client/libfabric/connection/connection.h"
#include "client/libfabric/connection/event_queue.h"
#include "client/libfabric/data_path.h"
#include "client/libfabric/domain.h"
#include "client/libfabric/handle.h"

namespace rnicd::fi {

// A connected endpoint (FI_EP_MSG; fi_endpoint(3)): a queue pair once it is enabled, and its connection.
class Endpoint final : public Connectable {
 public:
  // fi_ops_domain::endpoint. From a request to connect, from a passive endpoint whose address it takes over, or from
  // neither.
  static int Open(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);
  static Endpoint& Of(fid* endpoint) { return ObjectOf<fid_ep, Endpoint>(endpoint); }
  ~Endpoint();

  // Null until the endpoint is enabled.
  DataPath* data_path() const { return data_path_.get(); }
  // Flags of operations that are posted without any: fi_tx_attr::op_flags, fi_rx_attr::op_flags.
  uint64_t transmit_flags() const { return info_->tx_attr->op_flags; }
  uint64_t receive_flags() const { return info_->rx_attr->op_flags; }

  void OnSessionEnded();

  fid& Fid() override { return handle_.api.fid; }
  std::span<const std::byte> QueuePairAddress() const override;
  int ConnectQueuePair(std::span<const std::byte> address) override;
  void OnPeerGone() override;

 private:
  // Queues that are bound to it.
  struct Bound {
    EventQueue* events = nullptr;
    CompletionQueue* transmit = nullptr;
    CompletionQueue* receive = nullptr;
    bool selective_transmit = false;
    bool selective_receive = false;
  };
  struct Operations;

  Endpoint(Domain& domain, OwnedInfo info, void* context);
  int BindEvents(EventQueue& events);
  int Enable();
  int ReserveAndAdd(const DataPath::Options& options);

  Domain& domain_;
  Handle<fid_ep, Endpoint> handle_;
  const OwnedInfo info_;
  Bound bound_;
  std::unique_ptr<DataPath> data_path_;
  rnicd_qp_info qp_info_ = {};
  std::unique_ptr<Connection> connection_;
  // Before there is a connection: from where it connects. Without a family that is left to the system.
  sockaddr_storage own_address_ = {};
};

// fi_ops_msg and fi_ops_rma.
fi_ops_msg& MessageOperations();
fi_ops_rma& RmaOperations();

}  // namespace rnicd::fi
