#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ndk/network_address.h"
#include "base/strong_id.h"
#include "client/cpp/connector.h"

namespace rnicd::inline client {

class Client;

struct ListenOptions {
  // Connectors on this node find the listener by it: 1 to 63 printable ASCII characters other than space and "/".
  // Empty: no name.
  std::string name;
  // An address of the adapter, by default its first. Port 0: one that is free and permitted.
  NetworkAddress local;
};

// Takes requests for connections at an address: an NDK listener.
//
// Lifetime: keeps the session. The destructor closes within ClientOptions::release_deadline: requests that NextRequest
//           has not returned are rejected, as are those that come later. The address stays taken until every connector
//           accepted over it is closed. A moved-from listener is closed and may be destroyed or assigned.
// Threads:  calls are safe from several threads at once; moving and destroying are not. A request wakes one waiting
//           thread. Never wait in a callback of this library.
// Errors:   OBJECT_NOT_FOUND for a listener that is closed or moved from; transport failures.
// Source:   NDK_FN_CREATE_LISTENER, _LISTEN, _CONTROL_CONNECT_EVENTS, _GET_LISTENER_LOCAL_ADDRESS;
//           NDK_FN_CONNECT_EVENT_CALLBACK.
class Listener {
 public:
  // Creates a listener and lets it listen. Errors: ADDRESS_INVALID, ADDRESS_IN_USE, PORTS_EXHAUSTED,
  // ADDRESS_NOT_PERMITTED, NAME_TAKEN, FIELD_OUT_OF_RANGE (name), QUOTA_LISTENERS, QUOTA_HEAP_BYTES,
  // DEVICE_NOT_CAPABLE.
  static absl::StatusOr<Listener> Listen(const Client& client, const ListenOptions& options = {});

  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&&) noexcept = default;

  // Id of the listener; 0 for one that is closed or moved from.
  ListenerId id() const;
  // Where it listens.
  NetworkAddress local() const;
  // "namespace/name", by which connectors of any tenant find it. Empty without a name, and when closed.
  const std::string& full_name() const;

  // The oldest request, as a connector to accept or reject; waits up to the timeout for one. Every request since Listen
  // comes once. Errors: CONNECTION_TIMED_OUT on timeout; SESSION_ENDING, or a transport failure, when none will come.
  absl::StatusOr<Connector> NextRequest(std::chrono::milliseconds wait_max);
  // Until Resume, requests are refused as if nobody listened; those that came before stay.
  absl::Status Pause();
  absl::Status Resume();

  // Does what the destructor does and returns the outcome, within ClientOptions::call_deadline.
  absl::Status Close();

 private:
  struct Open;

  explicit Listener(std::shared_ptr<Open> open) : open_(std::move(open)) {}
  absl::Status Control(bool pause);

  // Null when moved from or closed.
  std::shared_ptr<Open> open_;
};

}  // namespace rnicd::inline client
