#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "provider/api/device.h"

// Connections by address of a decorator that wraps queue pairs too: a card takes only its own.
namespace rnicd::provider {

// The card's queue pair in one of the decorator's.
using InnerPair = DeviceQueuePair& (*)(DeviceQueuePair& pair);

absl::StatusOr<std::unique_ptr<DeviceConnector>> CreateInnerConnector(DeviceAdapter& inner, InnerPair inner_pair,
                                                                      std::weak_ptr<ConnectorListener> listener);
// The requests that come have connectors of the decorator.
absl::StatusOr<std::unique_ptr<DeviceListener>> ListenInside(DeviceAdapter& inner, InnerPair inner_pair,
                                                             const NetworkAddress& address,
                                                             std::weak_ptr<RequestListener> listener);

}  // namespace rnicd::provider
