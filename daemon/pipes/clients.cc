#include "daemon/pipes/clients.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/secrets/random.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/door/refusal.h"

namespace rnicd::pipes {
namespace {

std::string NewSecret() {
  std::array<std::byte, SecretDigest::kBytes> bytes;
  FillFromKernel(bytes);
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

absl::Status Clients::Join(const Key& key, const Peer& peer) {
  std::unique_ptr<Client>& client = clients_[key];
  if (client != nullptr && client->peer.caller.process != peer.caller.process) {
    // Its process keeps the pid, so no other can have it.
    return absl::UnauthenticatedError("another process has this pid");
  }
  if (client == nullptr) {
    client = std::make_unique<Client>();
    client->peer = peer;
    client->secret = NewSecret();
    client->exit = ExitWatch::Begin(peer.process->handle(), [this, key, process = peer.caller.process] {
      loop_.Post([this, key, process] { HandleExit(key, process); });
    });
    if (client->exit == nullptr) {
      clients_.erase(key);
      return absl::ResourceExhaustedError("the peer's process cannot be watched");
    }
  }
  ++client->pipes;
  return absl::OkStatus();
}

void Clients::Leave(const Key& key) {
  const auto found = clients_.find(key);
  if (found == clients_.end() || --found->second->pipes > 0) {
    return;
  }
  const std::unique_ptr<Client> last = std::move(found->second);
  clients_.erase(found);
  for (auto& [number, connection] : last->connections) {
    Close(std::move(connection));
  }
  // Windows closes a dying process's pipes before it says that the process has ended, and nobody waits for that now.
  if (!IsClient(last->peer.caller.process)) {
    services_.registry.EndAllOf(last->peer.caller.process, core::EndCause::kConnectionLost);
  }
}

// At either door.
bool Clients::IsClient(const core::ProcessKey& process) const {
  return std::any_of(clients_.begin(), clients_.end(),
                     [&](const auto& entry) { return entry.second->peer.caller.process == process; });
}

bool Clients::HasConnections(const Key& key) const {
  const auto found = clients_.find(key);
  return found != clients_.end() && !found->second->connections.empty();
}

void Clients::HandleExit(const Key& key, const core::ProcessKey& process) {
  const auto found = clients_.find(key);
  if (found != clients_.end() && found->second->peer.caller.process == process) {
    // A child that has inherited the pipe does not keep its parent's objects alive.
    services_.registry.EndAllOf(process, core::EndCause::kProcessExited);
    on_exit_(key);
  }
}

void Clients::Refuse(std::string_view reason, const core::Caller* caller) {
  door::ReportRefusal(services_.node, services_.logger, {.reason = reason, .cause = {}}, caller);
}

void Clients::Adopt(const Key& key, UniqueSocket socket) {
  const auto found = clients_.find(key);
  if (found == clients_.end()) {
    Refuse(core::kRefusedIdentity, nullptr);
    return;
  }
  Client& client = *found->second;
  const core::Caller& caller = client.peer.caller;
  door::Entrance::Outcome outcome;
  if (key.first == Door::kWorkload) {
    outcome = entrance_.Admit(core::OwnerOf(caller));
    if (outcome.place == nullptr) {
      Refuse(outcome.refusal, &caller);
      return;
    }
  }
  const uint64_t number = next_connection_++;
  // The server may end the connection after this object and its loop are gone.
  const auto on_end = [loop = loop_.weak_from_this(), this, key, number] {
    if (const std::shared_ptr<Loop> alive = loop.lock(); alive != nullptr) {
      alive->Post([this, key, number] { Close(key, number); });
    }
  };
  std::unique_ptr<door::ServedConnection> served =
      services_.server.Serve({.socket = std::make_shared<const UniqueSocket>(std::move(socket)),
                              .caller = caller,
                              .refuses_descriptors = true,
                              .secret = SecretDigest::Of(client.secret),
                              .on_end = on_end});
  connection_count_.fetch_add(1);
  client.connections.emplace(number, Connection{.served = std::move(served), .place = std::move(outcome.place)});
}

void Clients::Close(const Key& key, uint64_t connection) {
  const auto found = clients_.find(key);
  if (found != clients_.end()) {
    auto closed = found->second->connections.extract(connection);
    if (!closed.empty()) {
      Close(std::move(closed.mapped()));
    }
  }
}

// The place is free before the connection is no longer counted.
void Clients::Close(Connection connection) {
  connection.served->Disconnected();
  connection.served.reset();
  connection.place.reset();
  connection_count_.fetch_sub(1);
}

void Clients::CloseSilent(Instant since) {
  std::vector<std::pair<Key, uint64_t>> silent;
  for (const auto& [key, client] : clients_) {
    for (const auto& [number, connection] : client->connections) {
      if (connection.served->SilentSince(since)) {
        silent.emplace_back(key, number);
      }
    }
  }
  for (const auto& [key, number] : silent) {
    Refuse(core::kRefusedSilent, &clients_.at(key)->peer.caller);
    Close(key, number);
  }
}

void Clients::EndAll() {
  for (auto& [key, client] : std::exchange(clients_, {})) {
    for (auto& [number, connection] : client->connections) {
      Close(std::move(connection));
    }
  }
}

}  // namespace rnicd::pipes
