#include "provider/soft/net/soft_switch.h"

#include <utility>

#include "base/status.h"
#include "provider/soft/net/soft_connector.h"

namespace rnicd::provider {
namespace {

class SoftListener final : public DeviceListener {
 public:
  SoftListener(SoftSwitch& net, const NetworkAddress& address) : net_(net), address_(address) {}
  ~SoftListener() override { net_.RemoveListener(address_); }
  SoftListener(const SoftListener&) = delete;
  SoftListener& operator=(const SoftListener&) = delete;

 private:
  SoftSwitch& net_;
  const NetworkAddress address_;
};

}  // namespace

void SoftSwitch::AddHost(const IpAddress& host) {
  MutexLock lock(mutex_);
  hosts_.insert(host);
}

absl::StatusOr<std::unique_ptr<DeviceListener>> SoftSwitch::Listen(const NetworkAddress& address,
                                                                   std::weak_ptr<RequestListener> listener) {
  MutexLock lock(mutex_);
  if (!listeners_.try_emplace(address, std::move(listener)).second) {
    return MakeError(ErrorReason::ADDRESS_IN_USE, "local");
  }
  return std::make_unique<SoftListener>(*this, address);
}

void SoftSwitch::RemoveListener(const NetworkAddress& address) {
  MutexLock lock(mutex_);
  listeners_.erase(address);
}

uint64_t SoftSwitch::AddConnector(const std::weak_ptr<SoftConnector>& connector) {
  MutexLock lock(mutex_);
  while (true) {
    const uint64_t number = random_.Next() & ~uint64_t{1};
    if (number != 0 && !connectors_.contains(PeerOf(number)) && connectors_.try_emplace(number, connector).second) {
      return number;
    }
  }
}

void SoftSwitch::RemoveConnector(uint64_t number) {
  MutexLock lock(mutex_);
  connectors_.erase(number);
}

void SoftSwitch::Send(SoftMessage message) {
  if (message.link != 0) {
    // A link that is lost ends what it had, but not what began behind its back.
    if (network_->Send(message.link, message) || message.kind != SoftMessage::Kind::kRequest) {
      return;
    }
    message = {.kind = SoftMessage::Kind::kEnd,
               .from = message.to,
               .to = message.from,
               .connector = PeerOf(message.connector),
               .reason = ErrorReason::HOST_UNREACHABLE};
  }
  worker_.Post([this, message = std::move(message)] { Deliver(message); });
}

void SoftSwitch::Deliver(const SoftMessage& message) {
  const bool is_request = message.kind == SoftMessage::Kind::kRequest;
  if (is_request && !HasHost(message.to.ip)) {
    Send({.kind = SoftMessage::Kind::kEnd,
          .from = message.to,
          .to = message.from,
          .connector = PeerOf(message.connector),
          .reason = ErrorReason::HOST_UNREACHABLE,
          .link = message.link});
    return;
  }
  if (is_request) {
    if (IsFromPeer(message)) {
      TakeRequest(message);
    }
    return;
  }
  std::shared_ptr<SoftConnector> connector;
  {
    MutexLock lock(mutex_);
    const auto found = connectors_.find(message.connector);
    connector = found != connectors_.end() ? found->second.lock() : nullptr;
  }
  if (connector != nullptr) {
    connector->Receive(message);
  }
}

bool SoftSwitch::IsFromPeer(const SoftMessage& message) const {
  MutexLock lock(mutex_);
  return !connectors_.contains(message.connector) &&
         (message.link == 0 || network_->Find(message.from.ip) == message.link);
}

uint64_t SoftSwitch::LinkTo(const IpAddress& host) const {
  return network_ == nullptr || HasHost(host) ? 0 : network_->Find(host);
}

void SoftSwitch::LoseLink(uint64_t link) {
  std::map<uint64_t, std::weak_ptr<SoftConnector>> connectors;
  {
    MutexLock lock(mutex_);
    connectors = connectors_;
  }
  for (const auto& [number, weak] : connectors) {
    if (const std::shared_ptr<SoftConnector> connector = weak.lock(); connector != nullptr) {
      connector->LoseLink(link);
    }
  }
}

bool SoftSwitch::HasHost(const IpAddress& host) const {
  MutexLock lock(mutex_);
  return hosts_.contains(host);
}

// The connector refuses the request when it is destroyed undecided, also where nobody listens.
void SoftSwitch::TakeRequest(const SoftMessage& request) {
  const auto connector = std::make_shared<SoftConnector>(*this, request);
  auto handle = std::make_unique<SoftConnectorHandle>(connector);
  const std::shared_ptr<RequestListener> listener = FindListener(request.to);
  if (listener == nullptr) {
    return;
  }
  {
    MutexLock lock(mutex_);
    connectors_[request.connector] = connector;
  }
  const std::shared_ptr<ConnectorListener> hearer = listener->OnRequest(
      {.connector = std::move(handle), .local = request.to, .peer = request.from, .offer = request.offer});
  if (hearer == nullptr) {
    connector->Close();
  } else {
    connector->SetListener(hearer);
  }
}

std::shared_ptr<RequestListener> SoftSwitch::FindListener(const NetworkAddress& address) const {
  MutexLock lock(mutex_);
  const auto found = listeners_.find(address);
  return found != listeners_.end() ? found->second.lock() : nullptr;
}

}  // namespace rnicd::provider
