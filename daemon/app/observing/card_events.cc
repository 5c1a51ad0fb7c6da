#include "daemon/app/observing/card_events.h"

namespace rnicd::app {
namespace {

// An event that takes a card out of use is a warning; its arrival, or a new address, is information.
bool IsWarning(provider::AdapterEventKind kind) {
  switch (kind) {
    case provider::AdapterEventKind::kPortUp:
    case provider::AdapterEventKind::kAddressChanged:
    case provider::AdapterEventKind::kAdded:
      return false;
    case provider::AdapterEventKind::kPortDown:
    case provider::AdapterEventKind::kRemoved:
    case provider::AdapterEventKind::kLeftOut:
      return true;
  }
  return true;
}

}  // namespace

void LogHealth(const log::Logger& logger, const health::AdapterHealth& adapter) {
  if (adapter.healthy) {
    logger.Info("adapter healthy", {{"adapter", adapter.adapter}});
  } else {
    logger.Warning("adapter unhealthy",
                   {{"adapter", adapter.adapter}, {"error", std::string(adapter.status.message())}});
  }
}

void LogEngine(const log::Logger& logger, const provider::AdapterDescription& adapter) {
  if (!adapter.fast_engine.empty()) {
    logger.Info("fast registrations",
                {{"adapter", adapter.name}, {"engine", adapter.fast_engine}, {"because", adapter.fast_engine_reason}});
  }
}

void CardEvents::OnEvent(const provider::AdapterEvent& event) {
  const auto write = IsWarning(event.kind) ? &log::Logger::Warning : &log::Logger::Info;
  (logger_.*write)("adapter event", {{"adapter", event.adapter}, {"event", provider::AdapterEventName(event.kind)}});
  // A port that was left out is not an adapter, and has an explanation.
  if (event.kind != provider::AdapterEventKind::kLeftOut) {
    metrics_.OnAdapterEvent(event);
  }
  MutexLock lock(mutex_);
  if (followers_.has_value()) {
    Tell(event);
  }
}

void CardEvents::Tell(const provider::AdapterEvent& event) {
  if (event.kind == provider::AdapterEventKind::kRemoved) {
    followers_->registry.OnAdapterRemoved();
    followers_->prober.Rescan();
  } else if (event.kind == provider::AdapterEventKind::kAdded) {
    followers_->prober.Rescan();
    followers_->executor.Post([this, &provider = followers_->provider, name = event.adapter] {
      for (const provider::AdapterDescription& adapter : provider.ListAdapters()) {
        if (adapter.name == name) {
          LogEngine(logger_, adapter);
        }
      }
    });
  }
}

// Cards may have come or gone since the prober looked.
void CardEvents::BeginFollowing(const Followers& followers) {
  MutexLock lock(mutex_);
  followers_.emplace(followers);
  followers.prober.Rescan();
}

void CardEvents::EndFollowing() {
  MutexLock lock(mutex_);
  followers_.reset();
}

}  // namespace rnicd::app
