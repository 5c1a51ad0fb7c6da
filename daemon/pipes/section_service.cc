#include "daemon/pipes/section_service.h"

#include <utility>

#include "base/status.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/pipes/section_transfer.h"

namespace rnicd::pipes {
namespace {

absl::StatusOr<uint32_t> GiveOutcome(const WindowsProcess& client, const absl::StatusOr<UniqueFd>& outcome, Os& os) {
  RNICD_RETURN_IF_ERROR(outcome.status());
  return outcome->valid() ? GiveToClient(client, *outcome, os) : 0;
}

}  // namespace

void ServeSection(door::FileHandover& handover, Os& os, SectionRequest request) {
  const std::shared_ptr<const WindowsProcess> client = request.peer.process;
  door::HandoverRequest asked = {
      .caller = request.peer.caller,
      .owner = core::OwnerOf(request.peer.caller),
      .ticket = request.ticket,
      .receive = {},
      .reply = [client, &os, on_done = std::move(request.on_done)](const absl::StatusOr<UniqueFd>& outcome) {
        on_done(GiveOutcome(*client, outcome, os));
      }};
  if (request.given != 0) {
    asked.receive = [client, given = request.given](Os& receiving) {
      return TakeFromClient(*client, given, receiving);
    };
  }
  handover.Serve(std::move(asked));
}

}  // namespace rnicd::pipes
