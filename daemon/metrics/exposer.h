#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

class CivetServer;

namespace rnicd::metrics {

// A page: answers its body when it is asked for. Called from the server's threads.
using PageSource = std::function<std::string()>;

// /metrics and /healthz over plain HTTP; any other path is 404.
// Lifetime: the destructor waits for running requests. Threads: safe.
class Exposer {
 public:
  // `address`: host:port with a numeric IPv4 host; port 0 takes any free one. Errors: kUnavailable when the address
  // cannot be bound, kInvalidArgument when it is none.
  static absl::StatusOr<std::unique_ptr<Exposer>> Start(const std::string& address, PageSource metrics);
  ~Exposer();

  // host:port as bound.
  const std::string& address() const { return address_; }

 private:
  class Page;

  Exposer(std::string address, std::unique_ptr<CivetServer> server, std::unique_ptr<Page> metrics,
          std::unique_ptr<Page> health);

  const std::string address_;
  const std::unique_ptr<Page> metrics_;
  const std::unique_ptr<Page> health_;
  // Destroyed first: its threads use the pages.
  const std::unique_ptr<CivetServer> server_;
};

// True for "127.0.0.1:9747": a numeric IPv4 address and a port from 0 to 65535.
bool IsHostPort(const std::string& address);

}  // namespace rnicd::metrics
