#include "daemon/metrics/exposer.h"

#include <CivetServer.h>
#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace rnicd::metrics {
namespace {

// Headers for browsers: load only from this server, never in a frame, never from a cache.
constexpr char kSafeHeaders[] =
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 503:
      return "Service Unavailable";
    default:
      return "Unknown";
  }
}

// Threads that serve pages. A client without manners holds one for kRequestTimeout or kResponseTimeout, never longer.
constexpr char kThreads[] = "16";
// Time for the whole request, and for each wait until a client takes more of its response.
constexpr char kRequestTimeoutMs[] = "2000";
// Time for the whole response, whatever the client takes of it meanwhile.
constexpr std::chrono::seconds kResponseTimeout{5};
// Written at a time: the deadline is looked at in between.
constexpr size_t kChunkBytes = 4096;

void WriteBody(mg_connection* connection, std::string_view body) {
  const SteadyClock clock;
  const Instant deadline = clock.Now() + kResponseTimeout;
  while (!body.empty() && clock.Now() < deadline) {
    const size_t bytes = std::min(body.size(), kChunkBytes);
    if (mg_write(connection, body.data(), bytes) != static_cast<int>(bytes)) {
      return;
    }
    body.remove_prefix(bytes);
  }
}

void Respond(mg_connection* connection, const Page& page, bool with_body) {
  // Otherwise civetweb would read the body of the request, for as long as the client sends one.
  mg_disable_connection_keep_alive(connection);
  mg_printf(connection, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n", page.status,
            ReasonPhrase(page.status).data(), page.content_type.c_str(), page.body.size(), kSafeHeaders);
  if (with_body) {
    WriteBody(connection, page.body);
  }
}

Page Plain(int status, const char* text) {
  return Page{.status = status, .content_type = "text/plain; charset=utf-8", .body = text};
}

bool IsLoopback(const std::string& address) {
  in_addr parsed = {};
  return inet_pton(AF_INET, address.c_str(), &parsed) == 1 && (ntohl(parsed.s_addr) >> 24) == IN_LOOPBACKNET;
}

// The host part of the Host header: "127.0.0.1" of "127.0.0.1:9747".
std::string HostOf(const char* header) {
  const std::string host = header != nullptr ? header : "";
  return host.substr(0, host.rfind(':'));
}

}  // namespace

class Exposer::Handler final : public CivetHandler {
 public:
  // Without a route: responds to all paths that no route has.
  Handler() = default;
  explicit Handler(Route route) : route_(std::move(route)) {}

  const std::string& path() const { return route_.path; }

  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override { return Serve(connection, true); }
  bool handleHead(CivetServer* /*server*/, mg_connection* connection) override { return Serve(connection, false); }
  bool handlePost(CivetServer* /*server*/, mg_connection* connection) override { return Refuse(connection); }
  bool handlePut(CivetServer* /*server*/, mg_connection* connection) override { return Refuse(connection); }
  bool handlePatch(CivetServer* /*server*/, mg_connection* connection) override { return Refuse(connection); }
  bool handleDelete(CivetServer* /*server*/, mg_connection* connection) override { return Refuse(connection); }
  bool handleOptions(CivetServer* /*server*/, mg_connection* connection) override { return Refuse(connection); }

 private:
  bool Serve(mg_connection* connection, bool with_body) const {
    Respond(connection, PageFor(*mg_get_request_info(connection), connection), with_body);
    return true;
  }

  bool Refuse(mg_connection* connection) const {
    Respond(connection, Plain(405, "only GET and HEAD\n"), true);
    return true;
  }

  Page PageFor(const mg_request_info& request, mg_connection* connection) const {
    // civetweb passes everything below a route's path to it as well.
    if (route_.page == nullptr || route_.path != request.local_uri) {
      return Plain(404, "no such page\n");
    }
    if (route_.audience == Audience::kThisMachine && !FromThisMachine(request, connection)) {
      return Plain(403, "this page is for programs of this machine, by way of 127.0.0.1\n");
    }
    return route_.page();
  }

  static bool FromThisMachine(const mg_request_info& request, mg_connection* connection) {
    const std::string host = HostOf(mg_get_header(connection, "Host"));
    return IsLoopback(request.remote_addr) && (IsLoopback(host) || host == "localhost");
  }

  const Route route_;
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

absl::StatusOr<std::unique_ptr<Exposer>> Exposer::Start(const std::string& address, std::vector<Route> routes) {
  if (!IsHostPort(address)) {
    return absl::InvalidArgumentError("not a host:port: " + address);
  }
  const std::vector<std::string> options = {"listening_ports",    address,           "num_threads",       kThreads,
                                            "request_timeout_ms", kRequestTimeoutMs, "enable_keep_alive", "no"};
  std::unique_ptr<CivetServer> server;
  try {
    // civetweb reports a failed bind by an exception; rnicd's own code throws none.
    server = std::make_unique<CivetServer>(options);
  } catch (const std::exception& error) {
    return absl::UnavailableError("cannot listen on " + address + ": " + error.what());
  }
  std::vector<std::unique_ptr<Handler>> handlers;
  for (Route& route : routes) {
    handlers.push_back(std::make_unique<Handler>(std::move(route)));
    server->addHandler(handlers.back()->path() + "$", *handlers.back());
  }
  // civetweb selects the best match, so this one serves everything else.
  handlers.push_back(std::make_unique<Handler>());
  server->addHandler("/**", *handlers.back());
  const std::string bound =
      address.substr(0, address.rfind(':') + 1) + std::to_string(server->getListeningPorts().front());
  return std::unique_ptr<Exposer>(new Exposer(bound, std::move(server), std::move(handlers)));
}

Exposer::Exposer(std::string address, std::unique_ptr<CivetServer> server,
                 std::vector<std::unique_ptr<Handler>> handlers)
    : address_(std::move(address)), handlers_(std::move(handlers)), server_(std::move(server)) {}

Exposer::~Exposer() = default;

}  // namespace rnicd::metrics
