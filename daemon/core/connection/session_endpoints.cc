#include "daemon/core/connection/session_endpoints.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "daemon/core/connection/local_address.h"

namespace rnicd::core {

absl::StatusOr<SessionEndpoints::Created> SessionEndpoints::Create(AdapterId adapter_id, const LocalAddress& local) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Adapter> adapter, FindIn(adapters_, adapter_id, "adapter_id"));
  RNICD_ASSIGN_OR_RETURN(Kept<Adapter> kept, Adapter::Keep(std::move(adapter)));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kConnectors));
  AddressBook::Claim claim;
  RNICD_RETURN_IF_ERROR(
      TakeLocalAddress(node_.addresses, lease_, *kept, local, Purpose::kConnect, [&claim](AddressBook::Claim taken) {
        claim = std::move(taken);
        return absl::OkStatus();
      }));
  const NetworkAddress address = claim.address;
  const SharedEndpointId id =
      table_.Insert(std::make_shared<SharedEndpoint>(std::move(kept), std::move(claim), std::move(charge)));
  return Created{.id = id, .local = address};
}

MaybePending<> SessionEndpoints::Close(SharedEndpointId id, PendingChoice choice, const Done<>& done) {
  const std::shared_ptr<SharedEndpoint> endpoint = table_.Remove(id);
  if (endpoint == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "shared_endpoint_id");
  }
  return CloseRemoved(*endpoint, ReportClose(RequestKind::kCloseSharedEndpoint, id, choice, *endpoint, done));
}

}  // namespace rnicd::core
