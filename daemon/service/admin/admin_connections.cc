// The part of AdminView that shows listeners and connections.

#include <algorithm>
#include <utility>

#include "daemon/service/admin/admin_view.h"
#include "daemon/service/messages/connection_wire.h"

namespace rnicd::service {

std::vector<v1::ListenerInfo> AdminView::Listeners(const core::Session& session) {
  std::vector<v1::ListenerInfo> listeners;
  for (core::ListenerView& view : session.ViewListeners()) {
    v1::ListenerInfo& info = listeners.emplace_back();
    info.set_session_id(session.id().value);
    info.set_tenant(session.tenant().name());
    info.set_listener_id(view.listener.value);
    info.set_adapter_name(view.adapter_name);
    *info.mutable_local() = wire::ToWire(view.local);
    info.set_name(std::move(view.name));
    info.set_paused(view.paused);
    info.set_reported(view.reported);
    info.set_refused(view.refused);
  }
  std::ranges::sort(listeners, {}, &v1::ListenerInfo::listener_id);
  return listeners;
}

std::vector<v1::ConnectionInfo> AdminView::Connections(const core::Session& session) const {
  std::vector<v1::ConnectionInfo> connections;
  for (const auto& [adapter, view] : session.ViewConnections()) {
    v1::ConnectionInfo& info = connections.emplace_back();
    info.set_session_id(session.id().value);
    info.set_tenant(session.tenant().name());
    info.set_connector_id(view.connector.value);
    info.set_adapter_name(adapter);
    info.set_passive(view.passive);
    info.set_state(ToWire(view.state));
    *info.mutable_local() = wire::ToWire(view.addresses.local);
    *info.mutable_peer() = wire::ToWire(view.addresses.peer);
    info.set_qp_id(view.queue_pair.value);
    info.set_age_ms(MillisecondsSince(view.since));
    info.set_private_data_sent(static_cast<uint32_t>(view.sent_bytes));
    info.set_private_data_received(static_cast<uint32_t>(view.received_bytes));
  }
  std::ranges::sort(connections, {}, &v1::ConnectionInfo::connector_id);
  return connections;
}

}  // namespace rnicd::service
