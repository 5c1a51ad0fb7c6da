#include "daemon/metrics/exposer.h"

#include <CivetServer.h>
#include <arpa/inet.h>

#include <charconv>
#include <exception>
#include <utility>
#include <vector>

namespace rnicd::metrics {

class Exposer::Page final : public CivetHandler {
 public:
  Page(const char* content_type, PageSource source) : content_type_(content_type), source_(std::move(source)) {}

  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override {
    const std::string body = source_();
    mg_printf(connection,
              "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n\r\n",
              content_type_, body.size());
    mg_write(connection, body.data(), body.size());
    return true;
  }

 private:
  const char* const content_type_;
  const PageSource source_;
};

bool IsHostPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return false;
  }
  in_addr parsed = {};
  uint16_t port = 0;
  const char* const end = address.data() + address.size();
  const auto [rest, error] = std::from_chars(address.data() + colon + 1, end, port);
  return inet_pton(AF_INET, address.substr(0, colon).c_str(), &parsed) == 1 && error == std::errc() && rest == end;
}

absl::StatusOr<std::unique_ptr<Exposer>> Exposer::Start(const std::string& address, PageSource metrics) {
  if (!IsHostPort(address)) {
    return absl::InvalidArgumentError("not a host:port: " + address);
  }
  auto metrics_page = std::make_unique<Page>("text/plain; version=0.0.4; charset=utf-8", std::move(metrics));
  auto health_page = std::make_unique<Page>("text/plain; charset=utf-8", [] { return std::string("ok\n"); });
  const std::vector<std::string> options = {"listening_ports",    address, "num_threads", "2",
                                            "request_timeout_ms", "5000"};
  std::unique_ptr<CivetServer> server;
  try {
    // civetweb reports a bind that failed by throwing; nothing of ours throws.
    server = std::make_unique<CivetServer>(options);
  } catch (const std::exception& error) {
    return absl::UnavailableError("cannot listen on " + address + ": " + error.what());
  }
  server->addHandler("/metrics$", *metrics_page);
  server->addHandler("/healthz$", *health_page);
  const std::string bound =
      address.substr(0, address.rfind(':') + 1) + std::to_string(server->getListeningPorts().front());
  return std::unique_ptr<Exposer>(
      new Exposer(bound, std::move(server), std::move(metrics_page), std::move(health_page)));
}

Exposer::Exposer(std::string address, std::unique_ptr<CivetServer> server, std::unique_ptr<Page> metrics,
                 std::unique_ptr<Page> health)
    : address_(std::move(address)),
      metrics_(std::move(metrics)),
      health_(std::move(health)),
      server_(std::move(server)) {}

Exposer::~Exposer() = default;

}  // namespace rnicd::metrics
