#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/system/unique_socket.h"

namespace rnicd::metrics {

// The response to a GET.
struct Page {
  // An HTTP status: 200, 503.
  int status = 200;
  std::string content_type;
  std::string body;
};

// The clients that may request a page.
enum class Audience : uint8_t {
  kAnyone,
  // Programs of this machine: the peer's address is a loopback one, and so is the host that the request names, so that
  // a foreign web page cannot read it through a browser that runs here. Other clients get 403.
  kThisMachine,
};

struct Route {
  // "/metrics".
  std::string path;
  Audience audience = Audience::kAnyone;
  // Called from the server's thread, one at a time: while it runs, no other page is served.
  std::function<Page()> page;
};

// Serves the daemon's pages over plain HTTP, on one thread; a path without a route is 404, any method but GET and HEAD
// 405. A connection carries one request, which must come within 2 seconds; its body is not read. A response that its
// client has not taken after 5 seconds is cut off. Where slow clients have too many connections, the oldest of these is
// cut off.
// Lifetime: the destructor waits for a running request.
// Threads: safe.
class Exposer {
 public:
  // `address`: host:port with a numeric host; "[::]" stands for every address of the machine, in IPv4 too; port 0
  // selects any free one. `clock` outlives the exposer. Errors: kUnavailable when the address cannot be bound,
  // kInvalidArgument when it is malformed.
  // `listener`: a socket that listens at the address already, as from TakeListener; invalid for a new one.
  static absl::StatusOr<std::unique_ptr<Exposer>> Start(const std::string& address, std::vector<Route> routes,
                                                        const Clock& clock, UniqueSocket listener = {});
  ~Exposer();

  // Serves no new connection from now on; those that come wait for whoever has the socket.
  UniqueSocket TakeListener();

  // The bound address, host:port.
  const std::string& address() const { return address_; }

 private:
  class Server;

  Exposer(std::string address, std::unique_ptr<Server> server);

  const std::string address_;
  const std::unique_ptr<Server> server_;
};

// True for "127.0.0.1:9747" and "[::1]:9747": a numeric address and a port from 0 to 65535.
bool IsHostPort(const std::string& address);

}  // namespace rnicd::metrics
