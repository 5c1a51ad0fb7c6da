#include "daemon/metrics/exposer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files/unique_fd.h"
#include "daemon/metrics/host_port.h"

namespace rnicd::metrics {
namespace {

const SteadyClock kSteadyClock;

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

uint16_t PortOf(const std::string& address) {
  return static_cast<uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str()));
}

// The whole response to "<request line>"; empty when no server listens at this address.
template <typename Address>
std::string FetchFrom(const Address& address, const std::string& request_line, const std::string& host) {
  const auto* const native = reinterpret_cast<const sockaddr*>(&address);
  const UniqueFd fd(socket(native->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), native, sizeof(address)) != 0) {
    return "";
  }
  const std::string request = request_line + "\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(write(fd.get(), request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string response;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(fd.get(), buffer, sizeof(buffer))) > 0;) {
    response.append(buffer, static_cast<size_t>(got));
  }
  return response;
}

std::string Fetch(const Exposer& exposer, const std::string& request_line, const std::string& host = "localhost") {
  return FetchFrom(Loopback(PortOf(exposer.address())), request_line, host);
}

std::string FetchByIpv6(const Exposer& exposer, const std::string& request_line, const std::string& host) {
  const sockaddr_in6 address = {.sin6_family = AF_INET6,
                                .sin6_port = htons(PortOf(exposer.address())),
                                .sin6_flowinfo = 0,
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                                .sin6_scope_id = 0};
  return FetchFrom(address, request_line, host);
}

// A kernel without IPv6 and one where it is turned off have no such address.
bool HasIpv6Loopback() {
  const UniqueFd fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in6 address = {.sin6_family = AF_INET6,
                                .sin6_port = 0,
                                .sin6_flowinfo = 0,
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                                .sin6_scope_id = 0};
  return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// The kernel then has no sockets of IPv6 for this process.
void ForbidIpv6() {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
                          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {.len = std::size(filter), .filter = filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// One server for all cases.
class ExposerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = Exposer::Start("127.0.0.1:0", Routes(), kSteadyClock);
    ASSERT_TRUE(started.ok()) << started.status();
    exposer_ = *std::move(started);
  }
  static void TearDownTestSuite() { exposer_.reset(); }

  static std::vector<Route> Routes() {
    const auto scrape = [] {
      return Page{.content_type = "text/plain; version=0.0.4", .body = "scrape " + std::to_string(++scrapes_) + "\n"};
    };
    const auto secret = [] { return Page{.content_type = "text/html", .body = "for this machine\n"}; };
    const auto not_ready = [] { return Page{.status = 503, .content_type = "text/plain", .body = "not yet\n"}; };
    return {{.path = "/metrics", .page = scrape},
            {.path = "/", .audience = Audience::kThisMachine, .page = secret},
            {.path = "/readyz", .page = not_ready}};
  }

  static inline std::atomic<int> scrapes_{0};
  static inline std::unique_ptr<Exposer> exposer_;
};

TEST_F(ExposerTest, SaysWhereItListens) {
  EXPECT_TRUE(IsHostPort(exposer_->address())) << exposer_->address();
  EXPECT_NE(PortOf(exposer_->address()), 0);
}

TEST_F(ExposerTest, EveryScrapeIsFresh) {
  const int before = scrapes_;
  const std::string first = Fetch(*exposer_, "GET /metrics HTTP/1.1");
  EXPECT_TRUE(Contains(first, "HTTP/1.1 200")) << first;
  EXPECT_TRUE(Contains(first, "text/plain; version=0.0.4"));
  EXPECT_TRUE(Contains(first, "\r\n\r\nscrape " + std::to_string(before + 1) + "\n"));
  EXPECT_TRUE(Contains(Fetch(*exposer_, "GET /metrics?x=y HTTP/1.1"), "scrape " + std::to_string(before + 2) + "\n"));
}

TEST_F(ExposerTest, APageSaysItsOwnStatus) {
  const std::string response = Fetch(*exposer_, "GET /readyz HTTP/1.1");
  EXPECT_TRUE(Contains(response, "HTTP/1.1 503 Service Unavailable")) << response;
  EXPECT_TRUE(Contains(response, "\r\n\r\nnot yet\n"));
}

TEST_F(ExposerTest, ABrowserMayLoadNothingFromElsewhere) {
  const std::string response = Fetch(*exposer_, "GET / HTTP/1.1");
  EXPECT_TRUE(Contains(response, "Content-Security-Policy: default-src 'none'")) << response;
  EXPECT_TRUE(Contains(response, "X-Frame-Options: DENY"));
}

TEST_F(ExposerTest, APageForThisMachineIsReadThroughItsLoopbackNameOnly) {
  for (const char* const host : {"127.0.0.1:9747", "127.0.0.1", "localhost:9747", "localhost"}) {
    EXPECT_TRUE(Contains(Fetch(*exposer_, "GET / HTTP/1.1", host), "\r\n\r\nfor this machine\n")) << host;
  }
  for (const char* const host : {"evil.example", "evil.example:9747", "127.0.0.1.evil.example", "192.0.2.1:9747", ""}) {
    EXPECT_FALSE(Contains(Fetch(*exposer_, "GET / HTTP/1.1", host), "for this machine")) << host;
  }
  EXPECT_TRUE(Contains(Fetch(*exposer_, "GET /metrics HTTP/1.1", "evil.example"), "\r\n\r\nscrape "))
      << "that is for anyone";
}

TEST_F(ExposerTest, AHeadRequestGetsNoBody) {
  const std::string response = Fetch(*exposer_, "HEAD /metrics HTTP/1.1");
  EXPECT_TRUE(Contains(response, "HTTP/1.1 200")) << response;
  EXPECT_FALSE(Contains(response, "scrape"));
}

TEST_F(ExposerTest, NothingElseIsThere) {
  const int before = scrapes_;
  for (const char* const path :
       {"/x", "/metricsx", "/metrics/x", "/x/metrics", "/../../etc/passwd", "/%2e%2e/etc/passwd", "/index.html"}) {
    const std::string response = Fetch(*exposer_, std::string("GET ") + path + " HTTP/1.1");
    EXPECT_TRUE(Contains(response, "HTTP/1.1 404") || Contains(response, "HTTP/1.1 400")) << path << ": " << response;
    EXPECT_FALSE(Contains(response, "root:")) << path;
  }
  EXPECT_EQ(scrapes_, before);
}

TEST_F(ExposerTest, OnlyReadingIsPossible) {
  for (const char* const method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
    EXPECT_FALSE(Contains(Fetch(*exposer_, std::string(method) + " /metrics HTTP/1.1"), " 200 ")) << method;
    EXPECT_FALSE(Contains(Fetch(*exposer_, std::string(method) + " /metrics HTTP/1.1"), "scrape ")) << method;
  }
}

TEST(Exposer, WhenItIsGoneNobodyListens) {
  auto started = Exposer::Start("127.0.0.1:0", {}, kSteadyClock);
  ASSERT_TRUE(started.ok()) << started.status();
  const sockaddr_in address = Loopback(PortOf((*started)->address()));
  const auto connects = [&address] {
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  };
  EXPECT_TRUE(connects());
  started->reset();
  EXPECT_FALSE(connects());
}

TEST(Exposer, ABusyPortIsAStatusAndNotAnException) {
  const UniqueFd taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(taken.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(taken.get(), 1), 0);
  ASSERT_EQ(getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string busy = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  const auto started = Exposer::Start(busy, {}, kSteadyClock);
  EXPECT_EQ(started.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Contains(std::string(started.status().message()), busy)) << started.status();
}

std::vector<Route> PageForThisMachine() {
  const auto page = [] { return Page{.content_type = "text/plain", .body = "for this machine\n"}; };
  return {{.path = "/", .audience = Audience::kThisMachine, .page = page}};
}

TEST(Exposer, AllAddressesAreThoseOfBothFamilies) {
  const auto started = Exposer::Start("[::]:0", PageForThisMachine(), kSteadyClock);
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_TRUE((*started)->address().starts_with("[::]:")) << (*started)->address();
  EXPECT_NE(PortOf((*started)->address()), 0);
  for (const char* const host : {"127.0.0.1", "[::1]", "[::1]:9747", "[::ffff:127.0.0.1]:9747", "localhost"}) {
    EXPECT_TRUE(Contains(Fetch(**started, "GET / HTTP/1.1", host), "for this machine")) << host;
    EXPECT_EQ(Contains(FetchByIpv6(**started, "GET / HTTP/1.1", host), "for this machine"), HasIpv6Loopback()) << host;
  }
  for (const char* const host :
       {"[::2]", "[::ffff:192.0.2.1]", "[::1", "::1", "[::1].evil.example", "[::1]evil", "[]"}) {
    EXPECT_FALSE(Contains(Fetch(**started, "GET / HTTP/1.1", host), "for this machine")) << host;
    EXPECT_FALSE(Contains(FetchByIpv6(**started, "GET / HTTP/1.1", host), "for this machine")) << host;
  }
}

TEST(Exposer, OneAddressOfIpv6IsThatOneOnly) {
  const auto started = Exposer::Start("[::1]:0", PageForThisMachine(), kSteadyClock);
  ASSERT_EQ(started.ok(), HasIpv6Loopback()) << started.status();
  if (started.ok()) {
    EXPECT_TRUE(Contains(FetchByIpv6(**started, "GET / HTTP/1.1", "[::1]"), "for this machine"));
    EXPECT_EQ(Fetch(**started, "GET / HTTP/1.1", "127.0.0.1"), "");
  }
}

TEST(Exposer, WhereTheKernelHasNoIpv6AllAddressesAreThoseOfIpv4) {
  EXPECT_EXIT(
      {
        ForbidIpv6();
        const auto started = Exposer::Start("[::]:0", PageForThisMachine(), kSteadyClock);
        std::_Exit(started.ok() && Contains(Fetch(**started, "GET / HTTP/1.1"), "for this machine") ? 0 : 9);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(IsLoopback, IsEachAddressThatOnlyThisMachineHas) {
  for (const char* const host : {"127.0.0.1", "127.255.0.9", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f01:203]"}) {
    EXPECT_TRUE(IsLoopback(ParseHost(host).value())) << host;
  }
  for (const char* const host : {"128.0.0.1", "0.0.0.0", "[::]", "[::2]", "[fd00::1]", "[::127.0.0.1]",
                                 "[::fffe:127.0.0.1]", "[::ffff:126.0.0.1]", "[1::ffff:127.0.0.1]"}) {
    EXPECT_FALSE(IsLoopback(ParseHost(host).value())) << host;
  }
  EXPECT_FALSE(IsLoopback(HostOf(nullptr)));
}

TEST(Exposer, AnAddressThatIsNoneIsRefused) {
  EXPECT_EQ(Exposer::Start("localhost:0", {}, kSteadyClock).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(IsHostPort, TakesANumericAddressAndAPortAndNothingElse) {
  for (const char* const good : {"127.0.0.1:9747", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80", "[::]:0",
                                 "[fd00::2]:9747", "[::ffff:127.0.0.1]:80"}) {
    EXPECT_TRUE(IsHostPort(good)) << good;
  }
  for (const char* const bad : {"",
                                ":",
                                ":80",
                                "127.0.0.1",
                                "127.0.0.1:",
                                "127.0.0.1:65536",
                                "127.0.0.1:-1",
                                "127.0.0.1:80x",
                                "127.0.0.1: 80",
                                " 127.0.0.1:80",
                                "localhost:80",
                                "127.0.0.1:80,127.0.0.2:80",
                                "1.2.3:80",
                                "127.0.0.1:80s",
                                "127.0.0.01:80",
                                "::1:80",
                                "::1",
                                "[::1]",
                                "[::1]80",
                                "[::1",
                                "[]:80",
                                "[",
                                "[127.0.0.1]:80",
                                "[::1]x:80",
                                "[fe80::1%lo]:80",
                                "[::1]:80:80"}) {
    EXPECT_FALSE(IsHostPort(bad)) << bad;
  }
}

}  // namespace
}  // namespace rnicd::metrics
