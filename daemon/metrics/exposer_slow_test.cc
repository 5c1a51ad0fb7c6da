// Clients that hold connections to the pages as long as they can.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "daemon/metrics/exposer.h"

namespace rnicd::metrics {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyTime = std::chrono::steady_clock::time_point;

// More than the server has threads.
constexpr int kClients = 24;
constexpr milliseconds kPause{200};
constexpr seconds kScrapeTimeout{15};
constexpr seconds kHoldTimeout{20};
constexpr seconds kQuick{1};
// More than a socket buffers.
constexpr size_t kLargePageBytes = size_t{24} << 20;
// Slow, and yet enough that the server can always write a little.
constexpr size_t kLittleBytes = size_t{256} << 10;

struct Manner {
  std::string name;
  std::string first;
  // Sent after each pause.
  std::string more;
  // Read after each pause.
  size_t reads = 0;
};

class SlowClient {
 public:
  SlowClient(const std::string& address, const Manner& manner)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), manner_(manner) {
    sockaddr_in peer = {};
    peer.sin_family = AF_INET;
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer.sin_port = htons(static_cast<uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)), 0);
    Send(manner.first);
  }

  void Step() const {
    Send(manner_.more);
    std::string buffer(manner_.reads, ' ');
    recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  }
  // Everything until the server hangs up, or the time is over.
  std::string ReadUntil(SteadyTime deadline) const {
    const timeval wait = {.tv_sec = 0, .tv_usec = 100'000};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    std::string response;
    while (std::chrono::steady_clock::now() < deadline) {
      char buffer[4096];
      const ssize_t got = recv(fd_.get(), buffer, sizeof(buffer), 0);
      if (got == 0) {
        return response;
      }
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

class SlowClients : public ::testing::TestWithParam<Manner> {
 protected:
  void SetUp() override {
    auto started = Exposer::Start(
        "127.0.0.1:0",
        {{.path = "/metrics", .page = [] { return Page{.content_type = "text/plain", .body = "scrape\n"}; }},
         {.path = "/large",
          .page = [] { return Page{.content_type = "text/plain", .body = std::string(kLargePageBytes, 'x')}; }}});
    ASSERT_TRUE(started.ok()) << started.status();
    exposer_ = *std::move(started);
    for (int client = 0; client < kClients; ++client) {
      clients_.push_back(std::make_unique<SlowClient>(exposer_->address(), GetParam()));
    }
    stepper_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        for (const auto& client : clients_) {
          client->Step();
        }
        std::this_thread::sleep_for(kPause);
      }
    });
  }
  void TearDown() override {
    stepper_ = {};
    clients_.clear();
    exposer_.reset();
  }

  bool IsScrapedWithin(std::chrono::nanoseconds time) const {
    const SlowClient scraper(exposer_->address(), {.first = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"});
    const std::string response = scraper.ReadUntil(std::chrono::steady_clock::now() + time);
    return response.find("\r\n\r\nscrape\n") != std::string::npos;
  }

  std::unique_ptr<Exposer> exposer_;
  std::vector<std::unique_ptr<SlowClient>> clients_;
  std::jthread stepper_;
};

// Connections are served in turn, so the first scrape waits until threads have given up on clients, and a quick one
// shows that none is held any more.
TEST_P(SlowClients, DoNotKeepAScrapeOutAndHoldNoThreadForLong) {
  std::this_thread::sleep_for(2 * kPause);
  EXPECT_TRUE(IsScrapedWithin(kScrapeTimeout));
  bool is_quick = false;
  const SteadyTime deadline = std::chrono::steady_clock::now() + kHoldTimeout;
  while (!is_quick && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPause);
    is_quick = IsScrapedWithin(kQuick);
  }
  EXPECT_TRUE(is_quick);
}

const std::string kGetLarge = "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n";
const std::string kPost = "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n";

INSTANTIATE_TEST_SUITE_P(
    OfEachKind, SlowClients,
    ::testing::Values(Manner{.name = "Silent", .first = "", .more = ""},
                      Manner{.name = "HalfARequest", .first = "GET /metrics HT", .more = ""},
                      Manner{.name = "HeadersByteByByte", .first = "GET / HTTP/1.1\r\nx: ", .more = "x"},
                      Manner{.name = "BodyByteByByte", .first = kPost, .more = "x"},
                      Manner{.name = "ReadsNothing", .first = kGetLarge, .more = ""},
                      Manner{.name = "ReadsSlowly", .first = kGetLarge, .more = "", .reads = kLittleBytes}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace rnicd::metrics
