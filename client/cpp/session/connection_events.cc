#include "client/cpp/session/connection_events.h"

#include <utility>

namespace rnicd::inline client {

void ConnectionEvents::Watch(ListenerId id) {
  MutexLock lock(mutex_);
  requests_.try_emplace(id);
}

void ConnectionEvents::Watch(ConnectorId id) {
  MutexLock lock(mutex_);
  connectors_.try_emplace(id, false);
}

std::deque<ConnectorId> ConnectionEvents::Remove(ListenerId id) {
  MutexLock lock(mutex_);
  auto node = requests_.extract(id);
  return node.empty() ? std::deque<ConnectorId>() : std::move(node.mapped());
}

void ConnectionEvents::Remove(ConnectorId id) {
  MutexLock lock(mutex_);
  connectors_.erase(id);
}

std::optional<absl::StatusOr<ConnectorId>> ConnectionEvents::TakeRequest(ListenerId id) {
  MutexLock lock(mutex_);
  if (const auto found = requests_.find(id); found != requests_.end() && !found->second.empty()) {
    const ConnectorId oldest = found->second.front();
    found->second.pop_front();
    return oldest;
  }
  if (!closed_.ok()) {
    return closed_;
  }
  return std::nullopt;
}

std::optional<absl::Status> ConnectionEvents::DisconnectionOf(ConnectorId id) {
  MutexLock lock(mutex_);
  if (const auto found = connectors_.find(id); found != connectors_.end() && found->second) {
    return absl::OkStatus();
  }
  if (!closed_.ok()) {
    return closed_;
  }
  return std::nullopt;
}

bool ConnectionEvents::Deliver(const v1::ConnectEvent& event) {
  MutexLock lock(mutex_);
  const auto found = requests_.find(ListenerId{event.listener_id()});
  if (found == requests_.end()) {
    return false;
  }
  found->second.push_back(ConnectorId{event.connector_id()});
  return true;
}

void ConnectionEvents::Deliver(const v1::DisconnectEvent& event) {
  MutexLock lock(mutex_);
  if (const auto found = connectors_.find(ConnectorId{event.connector_id()}); found != connectors_.end()) {
    found->second = true;
  }
}

void ConnectionEvents::Close(const absl::Status& why) {
  MutexLock lock(mutex_);
  if (closed_.ok()) {
    closed_ = why;
  }
}

}  // namespace rnicd::inline client
