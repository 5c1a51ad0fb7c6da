#include "daemon/service/messages/convert.h"

#include <variant>

#include "base/status.h"
#include "wire/error_detail.h"
#include "wire/memory.h"

namespace rnicd::service {
namespace {

v1::RequestKind KindToWire(core::RequestKind kind) {
  switch (kind) {
    case core::RequestKind::kRegisterMr:
      return v1::REQUEST_KIND_REGISTER_MR;
    case core::RequestKind::kDeregisterMr:
      return v1::REQUEST_KIND_DEREGISTER_MR;
    case core::RequestKind::kCloseMr:
      return v1::REQUEST_KIND_CLOSE_MR;
    case core::RequestKind::kClosePd:
      return v1::REQUEST_KIND_CLOSE_PD;
    case core::RequestKind::kInitializeFastRegisterMr:
      return v1::REQUEST_KIND_INITIALIZE_FAST_REGISTER_MR;
    case core::RequestKind::kCloseCq:
      return v1::REQUEST_KIND_CLOSE_CQ;
    case core::RequestKind::kCloseQp:
      return v1::REQUEST_KIND_CLOSE_QP;
    case core::RequestKind::kCloseMw:
      return v1::REQUEST_KIND_CLOSE_MW;
    case core::RequestKind::kConnect:
      return v1::REQUEST_KIND_CONNECT;
    case core::RequestKind::kCompleteConnect:
      return v1::REQUEST_KIND_COMPLETE_CONNECT;
    case core::RequestKind::kAccept:
      return v1::REQUEST_KIND_ACCEPT;
    case core::RequestKind::kDisconnect:
      return v1::REQUEST_KIND_DISCONNECT;
    case core::RequestKind::kCloseListener:
      return v1::REQUEST_KIND_CLOSE_LISTENER;
    case core::RequestKind::kCloseConnector:
      return v1::REQUEST_KIND_CLOSE_CONNECTOR;
    case core::RequestKind::kCloseSharedEndpoint:
      return v1::REQUEST_KIND_CLOSE_SHARED_ENDPOINT;
  }
  return v1::REQUEST_KIND_UNSPECIFIED;
}

v1::RequestCompleted CompletedToWire(const core::RequestCompleted& completed) {
  v1::RequestCompleted wire;
  wire.set_kind(KindToWire(completed.kind));
  wire.set_request_context(completed.request_context);
  wire.set_object_id(completed.object_id);
  wire.set_ntstatus(static_cast<uint32_t>(NtStatusOf(completed.status)));
  if (!completed.status.ok()) {
    *wire.mutable_error() = wire::ToErrorDetail(completed.status);
  }
  if (completed.registration.has_value()) {
    *wire.mutable_registration() = wire::ToWire(*completed.registration);
  }
  return wire;
}

// Writes the body of an event of any kind.
struct EventFiller {
  v1::WatchEventsResponse& wire;

  void operator()(const core::RequestCompleted& completed) const {
    *wire.mutable_request_completed() = CompletedToWire(completed);
  }
  void operator()(const core::SessionEnding& ending) const {
    wire.mutable_session_ending()->set_cause(std::string(core::EndCauseName(ending.cause)));
  }
  void operator()(const core::CqNotified& notified) const {
    v1::CqNotification* notification = wire.mutable_cq_notification();
    notification->set_cq_id(notified.queue.value);
    notification->set_cq_context(notified.context);
    notification->set_ntstatus(static_cast<uint32_t>(notified.status));
  }
  void operator()(const core::QpDisconnected& disconnected) const {
    wire.mutable_qp_disconnected()->set_qp_id(disconnected.queue_pair.value);
    wire.mutable_qp_disconnected()->set_qp_context(disconnected.context);
  }
  void operator()(const core::ConnectRequested& requested) const {
    v1::ConnectEvent* const event = wire.mutable_connect_event();
    event->set_listener_id(requested.listener.value);
    event->set_listener_context(requested.context);
    event->set_connector_id(requested.connector.value);
  }
  void operator()(const core::ConnectorDisconnected& disconnected) const {
    wire.mutable_disconnect_event()->set_connector_id(disconnected.connector.value);
    wire.mutable_disconnect_event()->set_disconnect_context(disconnected.context);
  }
  void operator()(const core::AdapterRemoved& removed) const {
    wire.mutable_adapter_removed()->set_adapter_id(removed.adapter.value);
  }
  void operator()(const core::MemoryProgress& progress) const {
    v1::MemoryProgress* const message = wire.mutable_memory_progress();
    message->set_progress_context(progress.context);
    message->set_populated_bytes(progress.populated_bytes);
    message->set_size(progress.size);
  }
};

}  // namespace

v1::WatchEventsResponse ToWire(const core::Event& event) {
  v1::WatchEventsResponse wire;
  wire.set_sequence(event.sequence);
  std::visit(EventFiller{wire}, event.body);
  return wire;
}

void ToWire(const core::Ledger& ledger, google::protobuf::RepeatedPtrField<v1::ResourceUse>* resources) {
  for (size_t index = 0; index < core::kResourceCount; ++index) {
    const auto resource = static_cast<core::Resource>(index);
    v1::ResourceUse* use = resources->Add();
    use->set_name(std::string(core::ResourceName(resource)));
    use->set_used(ledger.used(resource));
    use->set_limit(ledger.limit(resource));
  }
}

v1::RegionInfo ToWire(const core::RegionView& view) {
  v1::RegionInfo wire;
  wire.set_adapter_name(view.adapter_name);
  wire.set_fast_register(view.fast_register);
  wire.set_state(std::string(view.state));
  wire.set_base_virtual_address(view.base.value);
  wire.set_length(view.length);
  wire.set_pages(view.pages);
  wire.set_page_size(wire::PageSizeToWire(view.page_bytes));
  wire.set_flags(MrFlagsFromAccessRights(view.rights));
  return wire;
}

std::string ToWire(const core::FdTicket& ticket) { return {ticket.begin(), ticket.end()}; }

}  // namespace rnicd::service
