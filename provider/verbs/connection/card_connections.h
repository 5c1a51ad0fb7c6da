#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/network_address.h"
#include "provider/api/connection.h"
#include "provider/verbs/card/verbs_context.h"
#include "provider/verbs/connection/cm_channel.h"

namespace rnicd::provider {

// Connections by address of one opening of a card: see DeviceAdapter.
class CardConnections {
 public:
  // `channel`: null where there is no connection manager.
  CardConnections(std::shared_ptr<CmChannel> channel, std::shared_ptr<VerbsContext> context)
      : channel_(std::move(channel)), context_(std::move(context)) {}

  std::vector<IpAddress> addresses() const;
  absl::StatusOr<std::unique_ptr<DeviceListener>> Listen(const NetworkAddress& address,
                                                         std::weak_ptr<RequestListener> listener) const;
  absl::StatusOr<std::unique_ptr<DeviceConnector>> CreateConnector(std::weak_ptr<ConnectorListener> listener) const;
  absl::StatusOr<IpAddress> LocateQueuePair(std::string_view peer_address) const;

 private:
  const std::shared_ptr<CmChannel> channel_;
  const std::shared_ptr<VerbsContext> context_;
};

}  // namespace rnicd::provider
