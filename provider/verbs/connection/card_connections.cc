#include "provider/verbs/connection/card_connections.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/status.h"
#include "provider/verbs/card/gid_choice.h"
#include "provider/verbs/connection/cm_status.h"
#include "provider/verbs/connection/verbs_connection.h"
#include "provider/verbs/queue/qp_address.h"

namespace rnicd::provider {
namespace {

IpAddress AddressOf(const ibv_gid& gid) {
  std::array<uint8_t, 16> bytes = {};
  std::ranges::copy(gid.raw, bytes.begin());
  return IpAddress(bytes);
}

class VerbsConnector final : public DeviceConnector {
 public:
  explicit VerbsConnector(std::shared_ptr<VerbsConnection> connection) : connection_(std::move(connection)) {}
  ~VerbsConnector() override { connection_->Close(); }
  VerbsConnector(const VerbsConnector&) = delete;
  VerbsConnector& operator=(const VerbsConnector&) = delete;

  absl::Status Connect(DeviceQueuePair& pair, const ConnectionPath& path, const ConnectionOffer& offer) override {
    return connection_->Connect(pair, path, offer);
  }
  absl::Status CompleteConnect(const ConnectionOffer& offer) override { return connection_->CompleteConnect(offer); }
  absl::Status Accept(DeviceQueuePair& pair, const ConnectionOffer& offer) override {
    return connection_->Accept(pair, offer);
  }
  absl::Status Reject(std::string_view private_data) override { return connection_->Reject(private_data); }
  absl::Status Disconnect() override { return connection_->Disconnect(); }

 private:
  const std::shared_ptr<VerbsConnection> connection_;
};

// Makes a connector of each request.
class Requests final : public CmSink {
 public:
  Requests(std::shared_ptr<CmChannel> channel, std::shared_ptr<VerbsContext> context,
           std::weak_ptr<RequestListener> listener)
      : channel_(std::move(channel)), context_(std::move(context)), listener_(std::move(listener)) {}

  // A request that nobody takes is rejected with its id.
  void OnEvent(CmEvent event) override {
    const std::shared_ptr<RequestListener> listener = listener_.lock();
    if (event.requested == nullptr || listener == nullptr) {
      return;
    }
    auto connection = std::make_shared<VerbsConnection>(channel_, context_);
    if (!connection->TakeRequest(std::move(event.requested))) {
      connection->Close();
      return;
    }
    const ConnectionPath path = connection->path();
    connection->SetListener(listener->OnRequest({.connector = std::make_unique<VerbsConnector>(connection),
                                                 .local = path.local,
                                                 .peer = path.peer,
                                                 .offer = std::move(event.offer)}));
  }

 private:
  const std::shared_ptr<CmChannel> channel_;
  const std::shared_ptr<VerbsContext> context_;
  const std::weak_ptr<RequestListener> listener_;
};

class VerbsListener final : public DeviceListener {
 public:
  VerbsListener(std::shared_ptr<Requests> requests, std::shared_ptr<CmId> id)
      : requests_(std::move(requests)), id_(std::move(id)) {}

 private:
  const std::shared_ptr<Requests> requests_;
  const std::shared_ptr<CmId> id_;
};

}  // namespace

// Those of RoCE: the addresses of its netdev. Without link-local ones, which are no address of a peer without a zone,
// and which a card has in its table where the host has none. The table of iWARP has only the MAC address of its netdev.
std::vector<IpAddress> CardConnections::addresses() const {
  std::vector<IpAddress> addresses;
  if (channel_ == nullptr) {
    return addresses;
  }
  const std::vector<GidEntry> table = context_->api().QueryGids(context_->raw(), context_->device().port());
  if (context_->device().iwarp() != nullptr) {
    return table.empty() ? addresses : context_->api().cards().AddressesOf(table.front().gid);
  }
  for (const GidEntry& entry : table) {
    if (entry.type == IBV_GID_TYPE_ROCE_V2 && !IsLinkLocal(entry.gid)) {
      addresses.push_back(AddressOf(entry.gid));
    }
  }
  return addresses;
}

absl::StatusOr<std::unique_ptr<DeviceListener>> CardConnections::Listen(const NetworkAddress& address,
                                                                        std::weak_ptr<RequestListener> listener) const {
  const std::vector<IpAddress> own = addresses();
  if (own.empty()) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }
  auto requests = std::make_shared<Requests>(channel_, context_, std::move(listener));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<CmId> id, channel_->CreateId(requests));
  int error = std::ranges::find(own, address.ip) == own.end() ? EADDRNOTAVAIL : 0;
  if (error == 0) {
    error = channel_->cm().Bind(id->raw(), address);
  }
  if (error == 0) {
    error = channel_->cm().Listen(id->raw());
  }
  if (error != 0) {
    return BindStatus(error, "rdma_listen");
  }
  return std::make_unique<VerbsListener>(std::move(requests), std::move(id));
}

absl::StatusOr<std::unique_ptr<DeviceConnector>> CardConnections::CreateConnector(
    std::weak_ptr<ConnectorListener> listener) const {
  if (addresses().empty()) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }
  auto connection = std::make_shared<VerbsConnection>(channel_, context_);
  connection->SetListener(std::move(listener));
  return std::make_unique<VerbsConnector>(std::move(connection));
}

// On InfiniBand a queue pair is addressed by its LID, which is no network address, and whose GID may be another's.
absl::StatusOr<IpAddress> CardConnections::LocateQueuePair(std::string_view peer_address) const {
  if (context_->device().info().rdma_technology != RdmaTechnology::kRoceV2) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE, "peer_address");
  }
  const std::optional<QpAddress> parsed = ParseQpAddress(peer_address);
  if (!parsed.has_value()) {
    return MakeError(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address");
  }
  return AddressOf(parsed->gid);
}

}  // namespace rnicd::provider
