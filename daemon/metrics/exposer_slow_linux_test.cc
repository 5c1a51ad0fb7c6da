// Clients that hold connections to the pages as long as they can.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/manual_clock_fake.h"
#include "base/waiting_fixture.h"
#include "daemon/metrics/exposer.h"

namespace rnicd::metrics {
namespace {

using std::chrono::seconds;

constexpr int kClients = 24;
// So that a page need not be enormous to be more than the sockets buffer.
constexpr int kReceiveBuffer = 64 << 10;
constexpr size_t kLargePageBytes = size_t{2} << 20;
// Slow, and yet enough that the server can always write a little.
constexpr size_t kLittleBytes = size_t{16} << 10;

const std::string kGetLarge = "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n";
const std::string kPost = "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n";

struct Manner {
  std::string name;
  std::string first;
  // Sent in each second.
  std::string more;
  // Read in each second.
  size_t reads = 0;
  // Timeout of a request, and of the response to it.
  seconds limit{2};
};

class SlowClient {
 public:
  SlowClient(const std::string& address, const Manner& manner)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), manner_(manner) {
    sockaddr_in peer = {};
    peer.sin_family = AF_INET;
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer.sin_port = htons(static_cast<uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof(kReceiveBuffer));
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)), 0);
    Send(manner.first);
  }

  void Step() const {
    Send(manner_.more);
    std::string buffer(manner_.reads, ' ');
    recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  }
  // True once the server has closed the connection.
  bool IsOver() const {
    pollfd state = {.fd = fd_.get(), .events = POLLRDHUP, .revents = 0};
    return poll(&state, 1, 0) == 1;
  }
  // Everything until the server closes the connection, or sends nothing for kTimeout.
  std::string ReadAll() const {
    const timeval wait = {.tv_sec = kTimeout.count(), .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    std::string response;
    char buffer[4096];
    for (ssize_t got = 1; got > 0;) {
      got = recv(fd_.get(), buffer, sizeof(buffer), 0);
      response.append(buffer, got > 0 ? static_cast<size_t>(got) : 0);
    }
    return response;
  }

 private:
  void Send(const std::string& text) const {
    if (!text.empty()) {
      send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }

  const UniqueFd fd_;
  const Manner manner_;
};

// An exposer with a clock that the test controls: while the clock stands, slow clients are cut off only by the limit on
// their number.
class SlowClientsTest : public ::testing::TestWithParam<Manner> {
 protected:
  SlowClientsTest() {
    const auto scrape = [] { return Page{.content_type = "text/plain", .body = "scrape\n"}; };
    const auto large = [this] {
      ++large_pages_;
      return Page{.content_type = "text/plain", .body = std::string(kLargePageBytes, 'x')};
    };
    auto started = Exposer::Start("127.0.0.1:0",
                                  {{.path = "/metrics", .page = scrape}, {.path = "/large", .page = large}}, clock_);
    EXPECT_TRUE(started.ok()) << started.status();
    exposer_ = *std::move(started);
  }

  bool IsScraped() const {
    const SlowClient scraper(exposer_->address(), {.first = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"});
    return scraper.ReadAll().find("\r\n\r\nscrape\n") != std::string::npos;
  }

  ManualClock clock_;
  std::atomic<int> large_pages_{0};
  std::unique_ptr<Exposer> exposer_;
};

using SlowClients = SlowClientsTest;

TEST_P(SlowClients, DoNotKeepAScrapeOutAndAreCutOff) {
  std::vector<std::unique_ptr<SlowClient>> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.push_back(std::make_unique<SlowClient>(exposer_->address(), GetParam()));
  }
  const int large_pages = GetParam().first == kGetLarge ? kClients : 0;
  ASSERT_TRUE(Eventually([&] { return large_pages_ == large_pages; }));
  // Accepted after all of them.
  EXPECT_TRUE(IsScraped());
  for (seconds passed{0}; passed < GetParam().limit; ++passed) {
    for (const auto& client : clients) {
      client->Step();
    }
    clock_.Advance(seconds(1));
  }
  EXPECT_TRUE(Eventually([&] {
    return std::all_of(clients.begin(), clients.end(), [](const auto& client) { return client->IsOver(); });
  }));
  EXPECT_TRUE(IsScraped());
}

INSTANTIATE_TEST_SUITE_P(
    OfEachKind, SlowClients,
    ::testing::Values(Manner{.name = "Silent", .first = "", .more = ""},
                      Manner{.name = "HalfARequest", .first = "GET /metrics HT", .more = ""},
                      Manner{.name = "HeadersByteByByte", .first = "GET / HTTP/1.1\r\nx: ", .more = "x"},
                      Manner{.name = "BodyByteByByte", .first = kPost, .more = "x"},
                      Manner{.name = "ReadsNothing", .first = kGetLarge, .limit = seconds(5)},
                      Manner{.name = "ReadsSlowly", .first = kGetLarge, .reads = kLittleBytes, .limit = seconds(5)}),
    [](const auto& instance) { return instance.param.name; });

using FloodOfSlowClients = SlowClientsTest;

// From a client that holds more slow connections than the server keeps, and opens new ones without end.
TEST_P(FloodOfSlowClients, DoesNotKeepAScrapeOut) {
  constexpr size_t kKept = 500;
  std::vector<std::unique_ptr<SlowClient>> clients(kKept);
  for (size_t opened = 0; opened < 2 * kKept; ++opened) {
    clients[opened % kKept] = std::make_unique<SlowClient>(exposer_->address(), GetParam());
    if (opened >= kKept && opened % 20 == 0) {
      ASSERT_TRUE(IsScraped()) << "after " << opened << " slow connections";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfEachKind, FloodOfSlowClients,
                         ::testing::Values(Manner{.name = "Silent", .first = "", .more = ""},
                                           Manner{.name = "HalfARequest", .first = "GET /metrics HT", .more = ""}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace rnicd::metrics
