#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/secrets/secret.h"
#include "base/system/unique_socket.h"
#include "daemon/core/tenant/caller.h"

namespace rnicd::door {

// A connection that a ConnectionServer serves.
// Lifetime: the destructor ends the service, and does not wait for it.
class ServedConnection {
 public:
  virtual ~ServedConnection() = default;
  // The client has disconnected: objects of the client must not survive because of this connection. Quick; called once,
  // before the destructor.
  virtual void Disconnected() = 0;
  // True when the connection has been idle since `since` and holds nothing.
  virtual bool SilentSince(Instant since) const = 0;
};

// A connection that a front door has admitted.
struct Admitted {
  // Connected and non-blocking.
  std::shared_ptr<const UniqueSocket> socket;
  core::Caller caller;
  // True when the client cannot send descriptors.
  bool refuses_descriptors = false;
  // The digest of the secret that every call must carry; empty where the socket alone proves who calls.
  std::optional<SecretDigest> secret;
  // Called once, on any thread, when the service has ended; may be empty, and may outlive the front door. Must not
  // block.
  std::function<void()> on_end;
};

// Serves the connections that a front door admits. Doors know no wire, and their tests have a server of their own.
class ConnectionServer {
 public:
  virtual ~ConnectionServer() = default;
  // Serves the connection as long as it keeps the socket. Called on several threads.
  virtual std::unique_ptr<ServedConnection> Serve(Admitted admitted) = 0;
};

}  // namespace rnicd::door
