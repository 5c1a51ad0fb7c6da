#include "daemon/service/service_methods.h"

#include <string>

#include "base/status.h"
#include "daemon/service/messages/convert.h"
#include "daemon/service/messages/pending.h"
#include "rnicd/v1/ring_service.pb.h"

namespace rnicd::service {
namespace {

absl::Status OpenRing(const core::SessionGuard& session, const v1::OpenRingRequest& request,
                      v1::OpenRingResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const core::OpenedRing opened,
                         session.rings().Open(request.entries(), request.payload_bytes()));
  response->set_ring_id(opened.ring.value);
  response->set_file_bytes(opened.file_bytes);
  response->set_memory_ticket(ToWire(opened.memory));
  response->set_doorbell_ticket(ToWire(opened.doorbell));
  response->set_pipe_ticket(ToWire(opened.pipe));
  return absl::OkStatus();
}

void CloseRing(const core::SessionGuard& session, const v1::CloseRingRequest& request,
               const gate::Reply<v1::CloseRingResponse>& reply) {
  const core::Done<> done = DoneOf(reply);
  core::FinishUnlessPending(session.rings().Close(RingId{request.ring_id()}, done), done);
}

}  // namespace

std::vector<gate::Method> RingMethods() {
  using core::Row;
  return {
      gate::Serve(Row("RingService.OpenRing"), OpenRing),
      gate::Serve(Row("RingService.CloseRing"), CloseRing),
  };
}

}  // namespace rnicd::service
