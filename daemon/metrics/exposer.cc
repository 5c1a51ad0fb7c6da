#include "daemon/metrics/exposer.h"

#include <microhttpd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "daemon/metrics/connection_deadlines.h"
#include "daemon/metrics/host_port.h"
#include "daemon/metrics/kernel_socket.h"

namespace rnicd::metrics {
namespace {

struct Header {
  const char* name;
  const char* value;
};

// One request for each connection; and for browsers: load only from this server, never in a frame, never from a cache.
constexpr Header kHeaders[] = {{"Connection", "close"},
                               {"Cache-Control", "no-store"},
                               {"X-Content-Type-Options", "nosniff"},
                               {"X-Frame-Options", "DENY"},
                               {"Referrer-Policy", "no-referrer"},
                               {"Content-Security-Policy",
                                "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                                "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}};

constexpr ConnectionLimits kLimits = {.request_time = std::chrono::seconds(2),
                                      .response_time = std::chrono::seconds(5),
                                      .requests = 64,
                                      .responses = 32,
                                      .response_bytes = size_t{32} << 20};
// At this limit libmicrohttpd accepts no more. It is never reached: above kLimits are only connections that were cut
// off and that the next round of the event loop closes; a round accepts 11. With the two descriptors of its own they
// are fewer than the 128 events that it takes at once: after exactly that many events it waits for more before it
// checks its control channel, and misses the stop.
constexpr unsigned kConnections = 125;
// For the headers of a request and of its response.
constexpr size_t kConnectionBytes = size_t{16} << 10;
// As other threads have: rendering calls much code, and a sanitizer enlarges frames.
constexpr size_t kStackBytes = size_t{8} << 20;

Page Plain(int status, const char* text) {
  return Page{.status = status, .content_type = "text/plain; charset=utf-8", .body = text};
}

bool IsFromLoopback(MHD_Connection* connection) {
  const MHD_ConnectionInfo* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info != nullptr && IsLoopback(HostOf(info->client_addr));
}

bool FromThisMachine(MHD_Connection* connection) {
  const char* const header = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  const std::string_view host = HostPart(header != nullptr ? header : "");
  const std::optional<SocketAddress> named = ParseHost(host);
  return IsFromLoopback(connection) && (host == "localhost" || (named.has_value() && IsLoopback(*named)));
}

int DescriptorOf(MHD_Connection* connection) {
  const MHD_ConnectionInfo* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info != nullptr ? static_cast<int>(info->connect_fd) : -1;
}

struct DestroyResponse {
  void operator()(MHD_Response* response) const { MHD_destroy_response(response); }
};
using Response = std::unique_ptr<MHD_Response, DestroyResponse>;

void DeleteBody(void* body) { delete static_cast<std::string*>(body); }

// Null when there is no memory for it.
Response ResponseOf(Page page) {
  auto body = std::make_unique<std::string>(std::move(page.body));
  Response response(
      MHD_create_response_from_buffer_with_free_callback_cls(body->size(), body->data(), DeleteBody, body.get()));
  if (response == nullptr) {
    return nullptr;
  }
  body.release();  // NOLINT(bugprone-unused-return-value): it is the response's now.
  bool complete =
      MHD_add_response_header(response.get(), MHD_HTTP_HEADER_CONTENT_TYPE, page.content_type.c_str()) == MHD_YES;
  for (const Header& header : kHeaders) {
    complete = complete && MHD_add_response_header(response.get(), header.name, header.value) == MHD_YES;
  }
  return complete ? std::move(response) : nullptr;
}

}  // namespace

// libmicrohttpd's event loop on its own thread.
class Exposer::Server {
 public:
  Server(std::vector<Route> routes, const Clock& clock) : routes_(std::move(routes)), deadlines_(kLimits, clock) {}
  ~Server() { MHD_stop_daemon(daemon_); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // False when the address cannot be bound; SocketErrorDetail has the reason. With a socket it is served in place of
  // the address.
  bool Listen(const SocketAddress& address, UniqueSocket listener);
  UniqueSocket TakeListener() { return UniqueSocket(MHD_quiesce_daemon(daemon_)); }
  uint16_t port() const { return MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port; }

 private:
  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* path, const char* method,
                              const char* version, const char* upload, size_t* upload_bytes, void** request);
  static void OnConnection(void* self, MHD_Connection* connection, void** context, MHD_ConnectionNotificationCode code);

  MHD_Result Respond(MHD_Connection* connection, std::string_view path, std::string_view method);
  Page PageFor(MHD_Connection* connection, std::string_view path, std::string_view method) const;

  const std::vector<Route> routes_;
  ConnectionDeadlines deadlines_;
  MHD_Daemon* daemon_ = nullptr;
};

bool Exposer::Server::Listen(const SocketAddress& address, UniqueSocket listener) {
  const unsigned family = address.family == kIpv6Family ? MHD_USE_DUAL_STACK : MHD_NO_FLAG;
  const MHD_OptionItem where =
      listener.valid()
          ? MHD_OptionItem{MHD_OPTION_LISTEN_SOCKET, listener.get(), nullptr}
          : MHD_OptionItem{MHD_OPTION_SOCK_ADDR, 0, const_cast<SocketAddress*>(&address)};  // NOLINT: it is only read.
  const MHD_OptionItem places[] = {where, {MHD_OPTION_END, 0, nullptr}};
  // An own channel for the stop: shutting down the socket that listens does not wake the loop where it has stopped to
  // accept.
  daemon_ = MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC | family, 0, nullptr, nullptr, OnRequest, this,
                             MHD_OPTION_ARRAY, places, MHD_OPTION_CONNECTION_LIMIT, kConnections,
                             MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_THREAD_STACK_SIZE,
                             kStackBytes, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, OnConnection,
                             this, MHD_OPTION_END);
  if (daemon_ != nullptr) {
    // It is the library's now.
    listener.Release();
  }
  return daemon_ != nullptr;
}

// Called when the headers are complete. The response is queued at once, so that the body is not read and the connection
// closed after the response.
MHD_Result Exposer::Server::OnRequest(void* self, MHD_Connection* connection, const char* path, const char* method,
                                      const char* /*version*/, const char* /*upload*/, size_t* /*upload_bytes*/,
                                      void** /*request*/) {
  return static_cast<Server*>(self)->Respond(connection, path, method);
}

void Exposer::Server::OnConnection(void* self, MHD_Connection* connection, void** /*context*/,
                                   MHD_ConnectionNotificationCode code) {
  ConnectionDeadlines& deadlines = static_cast<Server*>(self)->deadlines_;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    deadlines.Add(DescriptorOf(connection));
  } else {
    deadlines.Remove(DescriptorOf(connection));
  }
}

MHD_Result Exposer::Server::Respond(MHD_Connection* connection, std::string_view path, std::string_view method) {
  deadlines_.FinishRequest(DescriptorOf(connection));
  Page page = PageFor(connection, path, method);
  const auto status = static_cast<unsigned>(page.status);
  const size_t bytes = page.body.size();
  const Response response = ResponseOf(std::move(page));
  if (response == nullptr) {
    return MHD_NO;
  }
  deadlines_.BeginResponse(DescriptorOf(connection), bytes);
  return MHD_queue_response(connection, status, response.get());
}

Page Exposer::Server::PageFor(MHD_Connection* connection, std::string_view path, std::string_view method) const {
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
    return Plain(MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
  }
  const auto route =
      std::find_if(routes_.begin(), routes_.end(), [path](const Route& candidate) { return candidate.path == path; });
  if (route == routes_.end()) {
    return Plain(MHD_HTTP_NOT_FOUND, "no such page\n");
  }
  if (route->audience == Audience::kThisMachine && !FromThisMachine(connection)) {
    return Plain(MHD_HTTP_FORBIDDEN, "this page is for programs of this machine, by way of 127.0.0.1 or [::1]\n");
  }
  return route->page();
}

bool IsHostPort(const std::string& address) { return ParseHostPort(address).has_value(); }

absl::StatusOr<std::unique_ptr<Exposer>> Exposer::Start(const std::string& address, std::vector<Route> routes,
                                                        const Clock& clock, UniqueSocket listener) {
  std::optional<SocketAddress> parsed = ParseHostPort(address);
  if (!parsed.has_value()) {
    return absl::InvalidArgumentError("not a host:port: " + address);
  }
  // Without IPv6 in the kernel all addresses are those of IPv4, and the port is the same bytes.
  if (HostPart(address) == "[::]" && !HasIpv6()) {
    parsed->family = kIpv4Family;
  }
  auto server = std::make_unique<Server>(std::move(routes), clock);
  if (!server->Listen(*parsed, std::move(listener))) {
    return absl::UnavailableError("cannot listen on " + SocketErrorDetail(address));
  }
  const std::string bound = address.substr(0, address.rfind(':') + 1) + std::to_string(server->port());
  return std::unique_ptr<Exposer>(new Exposer(bound, std::move(server)));
}

Exposer::Exposer(std::string address, std::unique_ptr<Server> server)
    : address_(std::move(address)), server_(std::move(server)) {}

Exposer::~Exposer() = default;

UniqueSocket Exposer::TakeListener() { return server_->TakeListener(); }

}  // namespace rnicd::metrics
