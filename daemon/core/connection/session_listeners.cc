#include "daemon/core/connection/session_listeners.h"

#include <algorithm>

#include "base/status.h"
#include "daemon/core/connection/local_address.h"

namespace rnicd::core {
namespace {

constexpr size_t kNameBytesMax = 63;

bool IsListenerName(std::string_view name) {
  return name.size() <= kNameBytesMax &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~' && c != '/'; });
}

}  // namespace

std::string FullListenerName(const Lease& lease, const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return name;
  }
  const std::string& space = lease.tenant().workload()->name.namespace_name;
  return (space.empty() ? lease.tenant().name() : space) + "/" + name;
}

absl::StatusOr<ListenerId> SessionListeners::Create(AdapterId adapter_id, uint64_t context) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Adapter> adapter, FindIn(adapters_, adapter_id, "adapter_id"));
  RNICD_ASSIGN_OR_RETURN(Kept<Adapter> kept, Adapter::Keep(std::move(adapter)));
  if (kept->device().addresses().empty()) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE, "adapter_id");
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Charge> charge, requests_.TakeOne(Resource::kListeners));
  const auto listener =
      std::make_shared<Listener>(std::move(kept), context, std::move(charge), lease_.weak_from_this(), take_);
  const ListenerId id = table_.Insert(listener);
  listener->Publish(id);
  return id;
}

absl::StatusOr<ListeningAt> SessionListeners::Listen(ListenerId id, const LocalAddress& local,
                                                     const std::string& name) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Listener> listener, FindIn(table_, id, "listener_id"));
  RNICD_ASSIGN_OR_RETURN(const Closable::Hold hold, listener->Acquire());
  if (!IsListenerName(name)) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "name");
  }
  ListeningAt at{.full_name = name.empty() ? "" : FullListenerName(lease_, name)};
  RNICD_RETURN_IF_ERROR(TakeLocalAddress(
      node_.addresses, lease_, *listener->adapter(), local, Purpose::kListen,
      [&](AddressBook::Claim claim) -> absl::Status {
        at.local = claim.address;
        AddressBook::Hold name_hold;
        if (!at.full_name.empty()) {
          RNICD_ASSIGN_OR_RETURN(
              name_hold,
              node_.addresses.Publish(at.full_name, {.address = at.local, .tenant = lease_.tenant().number()}));
        }
        return listener->Listen(std::move(claim), at.full_name, std::move(name_hold));
      }));
  return at;
}

absl::Status SessionListeners::SetPaused(ListenerId id, bool paused) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Listener> listener, FindIn(table_, id, "listener_id"));
  return listener->SetPaused(paused);
}

absl::StatusOr<NetworkAddress> SessionListeners::LocalAddressOf(ListenerId id) const {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Listener> listener, FindIn(table_, id, "listener_id"));
  return listener->LocalAddress();
}

// The id is dead at once; the connectors of its requests hold the listener.
MaybePending<> SessionListeners::Close(ListenerId id, PendingChoice choice, const Done<>& done) {
  const std::shared_ptr<Listener> listener = table_.Remove(id);
  if (listener == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "listener_id");
  }
  listener->Stop();
  return CloseRemoved(*listener, ReportClose(RequestKind::kCloseListener, id, choice, *listener, done));
}

}  // namespace rnicd::core
