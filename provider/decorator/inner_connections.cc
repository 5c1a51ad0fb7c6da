#include "provider/decorator/inner_connections.h"

#include <string_view>
#include <utility>

#include "base/status.h"

namespace rnicd::provider {
namespace {

class OuterConnector final : public DeviceConnector {
 public:
  OuterConnector(std::unique_ptr<DeviceConnector> inner, InnerPair inner_pair)
      : inner_(std::move(inner)), inner_pair_(inner_pair) {}

  absl::Status Connect(DeviceQueuePair& pair, const ConnectionPath& path, const ConnectionOffer& offer) override {
    return inner_->Connect(inner_pair_(pair), path, offer);
  }
  absl::Status CompleteConnect(const ConnectionOffer& offer) override { return inner_->CompleteConnect(offer); }
  absl::Status Accept(DeviceQueuePair& pair, const ConnectionOffer& offer) override {
    return inner_->Accept(inner_pair_(pair), offer);
  }
  absl::Status Reject(std::string_view private_data) override { return inner_->Reject(private_data); }
  absl::Status Disconnect() override { return inner_->Disconnect(); }

 private:
  const std::unique_ptr<DeviceConnector> inner_;
  const InnerPair inner_pair_;
};

class OuterRequests final : public RequestListener {
 public:
  OuterRequests(std::weak_ptr<RequestListener> outer, InnerPair inner_pair)
      : outer_(std::move(outer)), inner_pair_(inner_pair) {}

  std::shared_ptr<ConnectorListener> OnRequest(ConnectionRequest request) override {
    const std::shared_ptr<RequestListener> outer = outer_.lock();
    if (outer == nullptr) {
      return nullptr;
    }
    request.connector = std::make_unique<OuterConnector>(std::move(request.connector), inner_pair_);
    return outer->OnRequest(std::move(request));
  }

 private:
  const std::weak_ptr<RequestListener> outer_;
  const InnerPair inner_pair_;
};

class OuterListener final : public DeviceListener {
 public:
  OuterListener(std::shared_ptr<OuterRequests> requests, std::unique_ptr<DeviceListener> inner)
      : requests_(std::move(requests)), inner_(std::move(inner)) {}

 private:
  const std::shared_ptr<OuterRequests> requests_;
  const std::unique_ptr<DeviceListener> inner_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceConnector>> CreateInnerConnector(DeviceAdapter& inner, InnerPair inner_pair,
                                                                      std::weak_ptr<ConnectorListener> listener) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceConnector> connector, inner.CreateConnector(std::move(listener)));
  return std::make_unique<OuterConnector>(std::move(connector), inner_pair);
}

absl::StatusOr<std::unique_ptr<DeviceListener>> ListenInside(DeviceAdapter& inner, InnerPair inner_pair,
                                                             const NetworkAddress& address,
                                                             std::weak_ptr<RequestListener> listener) {
  auto requests = std::make_shared<OuterRequests>(std::move(listener), inner_pair);
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceListener> inner_listener, inner.Listen(address, requests));
  return std::make_unique<OuterListener>(std::move(requests), std::move(inner_listener));
}

}  // namespace rnicd::provider
