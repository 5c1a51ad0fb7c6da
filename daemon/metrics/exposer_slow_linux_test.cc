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
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "daemon/metrics/exposer.h"

namespace rnicd::metrics {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr int kClients = 24;
constexpr milliseconds kPause{200};
constexpr seconds kQuick{2};
// A request has 2 seconds and a response 5, each with the time that a busy machine takes.
constexpr seconds kHoldTimeout{9};
// So that a page need not be enormous to be more than the sockets buffer.
constexpr int kReceiveBuffer = 64 << 10;
constexpr size_t kLargePageBytes = size_t{2} << 20;
// Slow, and yet enough that the server can always write a little.
constexpr size_t kLittleBytes = size_t{16} << 10;

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

std::unique_ptr<Exposer> StartExposer() {
  const auto scrape = [] { return Page{.content_type = "text/plain", .body = "scrape\n"}; };
  const auto large = [] { return Page{.content_type = "text/plain", .body = std::string(kLargePageBytes, 'x')}; };
  auto started =
      Exposer::Start("127.0.0.1:0", {{.path = "/metrics", .page = scrape}, {.path = "/large", .page = large}});
  EXPECT_TRUE(started.ok()) << started.status();
  return *std::move(started);
}

bool IsScrapedWithin(const Exposer& exposer, std::chrono::nanoseconds time) {
  const SlowClient scraper(exposer.address(), {.first = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"});
  const std::string response = scraper.ReadUntil(std::chrono::steady_clock::now() + time);
  return response.find("\r\n\r\nscrape\n") != std::string::npos;
}

class SlowClients : public ::testing::TestWithParam<Manner> {
 protected:
  void SetUp() override {
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
  }

  bool AreAllOver() const {
    return std::all_of(clients_.begin(), clients_.end(), [](const auto& client) { return client->IsOver(); });
  }

  const std::unique_ptr<Exposer> exposer_ = StartExposer();
  std::vector<std::unique_ptr<SlowClient>> clients_;
  std::jthread stepper_;
};

TEST_P(SlowClients, DoNotKeepAScrapeOutAndAreCutOff) {
  std::this_thread::sleep_for(2 * kPause);
  EXPECT_TRUE(IsScrapedWithin(*exposer_, kQuick));
  const SteadyTime deadline = std::chrono::steady_clock::now() + kHoldTimeout;
  while (!AreAllOver() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPause);
  }
  EXPECT_TRUE(AreAllOver());
  EXPECT_TRUE(IsScrapedWithin(*exposer_, kQuick));
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

// A client that holds more slow connections than the server keeps, each for longer than a request may take, and opens
// new ones without end.
class Flood {
 public:
  Flood(const Exposer& exposer, const Manner& manner)
      : thread_([&exposer, manner, this](const std::stop_token& stop) {
          for (size_t next = 0; !stop.stop_requested(); next = (next + 1) % kKept) {
            clients_[next] = std::make_unique<SlowClient>(exposer.address(), manner);
            if (++opened_ > static_cast<int>(kKept)) {
              std::this_thread::sleep_for(milliseconds(5));
            }
          }
        }) {}

  int opened() const { return opened_; }

 private:
  static constexpr size_t kKept = 500;
  std::vector<std::unique_ptr<SlowClient>> clients_ = std::vector<std::unique_ptr<SlowClient>>(kKept);
  std::atomic<int> opened_{0};
  std::jthread thread_;
};

class FloodOfSlowClients : public ::testing::TestWithParam<Manner> {};

TEST_P(FloodOfSlowClients, DoesNotKeepAScrapeOut) {
  const std::unique_ptr<Exposer> exposer = StartExposer();
  const Flood flood(*exposer, GetParam());
  constexpr int kConnections = 1000;
  while (flood.opened() < kConnections / 2) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  while (flood.opened() < kConnections) {
    // Less than the time of a request: a scrape that has to wait until others are past theirs is too late, and so is
    // each after it. On a busy machine one alone may be.
    const auto scrape = [&] { return IsScrapedWithin(*exposer, seconds(1)); };
    ASSERT_TRUE(scrape() || scrape() || scrape()) << "after " << flood.opened() << " slow connections";
    std::this_thread::sleep_for(kPause / 4);
  }
}

INSTANTIATE_TEST_SUITE_P(OfEachKind, FloodOfSlowClients,
                         ::testing::Values(Manner{.name = "Silent", .first = "", .more = ""},
                                           Manner{.name = "HalfARequest", .first = "GET /metrics HT", .more = ""}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace rnicd::metrics
