#include "daemon/core/connection/listener.h"

#include <optional>

#include "base/status.h"

namespace rnicd::core {

absl::Status Listener::Listen(AddressBook::Claim claim, std::string name, AddressBook::Hold name_hold) {
  {
    MutexLock lock(mutex_);
    if (listening_.has_value() || stopped_) {
      return MakeError(ErrorReason::LISTENER_STATE, "listener_id");
    }
    // Requests may come before the card's call has returned.
    listening_.emplace(Listening{.claim = claim, .name = std::move(name), .name_hold = std::move(name_hold)});
  }
  const std::shared_ptr<Closable> self = shared_from_this();
  auto device = adapter_->device().Listen(claim.address, std::shared_ptr<provider::RequestListener>(self, this));
  // Listening was stopped meanwhile: the card's listener ends behind the lock.
  MutexLock lock(mutex_);
  if (!device.ok()) {
    listening_.reset();
    return WithField(device.status(), "local");
  }
  if (!stopped_) {
    listening_->device = *std::move(device);
  }
  return absl::OkStatus();
}

absl::Status Listener::SetPaused(bool paused) {
  MutexLock lock(mutex_);
  if (!listening_.has_value() || stopped_) {
    return MakeError(ErrorReason::LISTENER_STATE, "listener_id");
  }
  listening_->paused = paused;
  return absl::OkStatus();
}

absl::StatusOr<NetworkAddress> Listener::LocalAddress() const {
  MutexLock lock(mutex_);
  if (!listening_.has_value()) {
    return MakeError(ErrorReason::LISTENER_STATE, "listener_id");
  }
  return listening_->claim.address;
}

void Listener::Stop() {
  std::unique_ptr<provider::DeviceListener> device;
  AddressBook::Hold name;
  MutexLock lock(mutex_);
  stopped_ = true;
  if (listening_.has_value()) {
    device = std::move(listening_->device);
    name = std::move(listening_->name_hold);
  }
}

std::shared_ptr<provider::ConnectorListener> Listener::OnRequest(provider::ConnectionRequest request) {
  {
    MutexLock lock(mutex_);
    if (!listening_.has_value() || listening_->paused || stopped_) {
      return nullptr;
    }
    // Before its owner hears of it, and may ask.
    ++listening_->reported;
  }
  const std::shared_ptr<Lease> lease = lease_.lock();
  std::shared_ptr<provider::ConnectorListener> taken = lease != nullptr ? take_(*this, std::move(request)) : nullptr;
  MutexLock lock(mutex_);
  if (taken == nullptr && listening_.has_value()) {
    --listening_->reported;
    ++listening_->refused;
  }
  return taken;
}

std::optional<ListenerView> Listener::View() const {
  MutexLock lock(mutex_);
  if (!listening_.has_value()) {
    return std::nullopt;
  }
  return ListenerView{.listener = id_,
                      .adapter_name = adapter_->name(),
                      .local = listening_->claim.address,
                      .name = listening_->name,
                      .paused = listening_->paused,
                      .reported = listening_->reported,
                      .refused = listening_->refused};
}

void Listener::Finalize() {
  std::optional<Listening> ended;
  MutexLock lock(mutex_);
  ended.swap(listening_);
}

}  // namespace rnicd::core
