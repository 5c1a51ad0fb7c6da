#include "client/cpp/objects/convert.h"

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

}  // namespace rnicd::inline client
