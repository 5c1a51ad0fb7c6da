// The part of Session that lets go of removed cards.

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "daemon/core/session/session.h"

namespace rnicd::core {

void Session::LeaveRemovedCards() {
  Later([](Session& session) { session.AnnounceRemovals(); });
}

void Session::Later(std::function<void(Session&)> step) {
  node().reapers.PostFor(tenant().number(), [weak = weak_from_this(), step = std::move(step)] {
    const std::shared_ptr<Lease> self = weak.lock();
    if (self == nullptr) {
      return;
    }
    // A session that is ending lets go of all its cards anyway.
    if (const absl::StatusOr<SessionGuard> guard = self->Begin(); guard.ok()) {
      step(static_cast<Session&>(*self));
    }
  });
}

void Session::AnnounceRemovals() {
  for (const auto& [id, adapter] : adapters_.table().All()) {
    if (adapter->removed() && adapter->AnnounceRemoval(id, events())) {
      ReportDetail("adapter.removed", "adapter_id=" + std::to_string(id.value), absl::OkStatus(), adapter->name());
      Disconnect(*adapter);
      CloseAfterGrace(adapter);
    }
  }
}

// As when all peers die at once; and nobody new comes.
void Session::Disconnect(const Adapter& adapter) {
  for (const auto& [id, listener] : listeners_.table().All()) {
    if (listener->adapter().get() == &adapter) {
      listener->Stop();
    }
  }
  for (const auto& [id, connector] : connectors_.table().All()) {
    if (&connector->adapter() == &adapter) {
      connector->Cancel(MakeError(ErrorReason::DEVICE_REMOVED));
    }
  }
  for (const auto& [id, pair] : pairs_.table().All()) {
    if (const absl::StatusOr<Closable::Hold> hold = pair->Acquire();
        hold.ok() && &pair->domain()->adapter() == &adapter) {
      pair->LoseCard();
    }
  }
}

// Again and again: what a running request was about to make is not found before that has ended.
void Session::CloseAfterGrace(const std::shared_ptr<Adapter>& adapter) {
  const auto job = [weak = weak_from_this(), adapter] {
    const std::shared_ptr<Lease> self = weak.lock();
    if (self == nullptr) {
      return;
    }
    static_cast<Session&>(*self).Later([adapter](Session& session) {
      session.CloseObjects({.adapter = adapter.get(), .reason = ErrorReason::DEVICE_REMOVED, .cause = kRemovalCause});
      if (!adapter->closed()) {
        session.CloseAfterGrace(adapter);
      }
    });
  };
  node().alarms.Set(node().limits.removal_grace, job);
}

}  // namespace rnicd::core
