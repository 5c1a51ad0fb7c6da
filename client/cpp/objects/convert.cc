#include "client/cpp/objects/convert.h"

#include "client/cpp/transport_failure.h"
#include "wire/adapter_info.h"

namespace rnicd::inline client {

AdapterSummary FromWire(const v1::AdapterSummary& adapter) {
  return AdapterSummary{.name = adapter.name(),
                        .provider = adapter.provider(),
                        .numa_node = adapter.numa_node(),
                        .info = wire::FromWire(adapter.info())};
}

SessionUse FromWire(const v1::GetSessionResponse& session) {
  SessionUse use{.id = SessionId{session.session_id()}, .label = session.label()};
  for (const v1::ResourceUse& resource : session.resources()) {
    use.resources.push_back(ResourceUse{.name = resource.name(), .used = resource.used(), .limit = resource.limit()});
  }
  return use;
}

absl::StatusOr<NetworkAddress> AddressFromWire(const v1::NetworkAddress& answered) {
  const absl::StatusOr<NetworkAddress> address = wire::FromWire(answered);
  return address.ok() ? address : TransportFailure(absl::StatusCode::kInternal, "an address that is none");
}

}  // namespace rnicd::inline client
