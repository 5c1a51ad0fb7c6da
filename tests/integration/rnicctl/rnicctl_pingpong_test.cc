// `rnicctl pingpong`: two processes, one of which writes into the other's memory, and peers that lie or hang up.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/system/unique_socket.h"
#include "tests/integration/rnicctl/rnicctl_run.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

sockaddr_in Loopback(uint16_t port) {
  return {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
}

// Waits at most kTimeout for each call on the socket.
UniqueSocket NewSocket() {
  UniqueSocket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval timeout = {.tv_sec = kTimeout.count() / 1'000, .tv_usec = 0};
  const int reuse = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  return socket;
}

// A port that belongs to this socket, where nobody listens yet.
uint16_t Bind(const UniqueSocket& socket) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

UniqueSocket ConnectTo(uint16_t port) {
  UniqueSocket socket = NewSocket();
  const sockaddr_in address = Loopback(port);
  EXPECT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return socket;
}

void SendAll(const UniqueSocket& socket, const std::string& bytes) {
  EXPECT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

// With its end; empty when the peer hung up.
std::string ReceiveLine(const UniqueSocket& socket) {
  std::string line;
  for (char byte = 0; byte != '\n' && recv(socket.get(), &byte, 1, 0) == 1;) {
    line += byte;
  }
  return line;
}

// Stands between the two sides of a transfer, and passes each line on after `change` had it, until one hangs up.
class Liar {
 public:
  Liar() : port_(Bind(door_)) { EXPECT_EQ(listen(door_.get(), 1), 0); }

  // Where the connector finds it.
  uint16_t port() const { return port_; }
  void Relay(uint16_t listener_port, const std::function<void(Json&)>& change) const {
    const UniqueSocket connector(accept(door_.get(), nullptr, nullptr));
    const UniqueSocket listener = ConnectTo(listener_port);
    // The sides speak in turns, and the connector begins.
    bool connector_speaks = true;
    for (Json message = Next(connector); message.is_object(); message = Next(connector_speaks ? connector : listener)) {
      change(message);
      SendAll(connector_speaks ? listener : connector, message.dump() + "\n");
      connector_speaks = !connector_speaks;
    }
  }

 private:
  static Json Next(const UniqueSocket& socket) { return Json::parse(ReceiveLine(socket), nullptr, false); }

  const UniqueSocket door_ = NewSocket();
  const uint16_t port_;
};

class RnicctlPingpong : public DaemonTest {
 protected:
  explicit RnicctlPingpong(const std::vector<std::string>& flags = {}) : DaemonTest(flags) {}

  std::unique_ptr<ChildProcess> Start(const std::string& size, const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {ExecutableForEveryone(RNICCTL_PATH), "pingpong",
                                        "--socket-dir=" + daemon().socket_dir(), "--size=" + size};
    command.insert(command.end(), arguments.begin(), arguments.end());
    auto process = ChildProcess::Start({.command = std::move(command), .uid = WorkloadUid()});
    EXPECT_TRUE(process.ok()) << process.status();
    return process.ok() ? *std::move(process) : nullptr;
  }

  std::unique_ptr<ChildProcess> Start(const std::vector<std::string>& arguments) const {
    return Start("128KiB", arguments);
  }

  // Starts a listener and waits until it listens.
  uint16_t StartListener(const std::string& adapter = AdapterUnderTest()) {
    listener_ = Start({"--listen=127.0.0.1:0", "--adapter=" + adapter});
    const std::string before = "listens on 127.0.0.1:";
    std::string output;
    EXPECT_TRUE(Eventually([&] {
      output = listener_->output().Text();
      return output.find(" for one peer") != std::string::npos;
    })) << output
        << listener_->errors().Text();
    const size_t found = output.find(before);
    return found == std::string::npos ? 0 : static_cast<uint16_t>(std::stoul(output.substr(found + before.size())));
  }

  static std::string At(uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

  ChildProcess& listener() { return *listener_; }

 private:
  std::unique_ptr<ChildProcess> listener_;
};

// The process failed and named the reason.
void ExpectFailure(ChildProcess& process, const std::string& reason) {
  const RnicctlRun run = Finish(process, 6 * kTimeout);
  EXPECT_EQ(run.exit_code, 1) << run.output << run.errors;
  EXPECT_NE(run.errors.find(reason), std::string::npos) << run.errors;
  EXPECT_EQ(run.output.find("It held"), std::string::npos) << run.output;
}

TEST_F(RnicctlPingpong, EachSideFindsTheBytesOfTheOther) {
  const uint16_t port = StartListener();
  const RnicctlRun connector = Finish(*Start({"--connect=" + At(port), "--rounds=7"}), 6 * kTimeout);
  const RnicctlRun listener = Finish(this->listener(), 6 * kTimeout);
  EXPECT_EQ(connector.exit_code, 0) << connector.errors << connector.output;
  EXPECT_EQ(listener.exit_code, 0) << listener.errors << listener.output;
  ASSERT_EQ(connector.lines().size(), 6u) << connector.output;
  ASSERT_EQ(listener.lines().size(), 6u) << listener.output;
  EXPECT_TRUE(connector.lines()[3].starts_with(" 4. 7 rounds: all 131072 bytes written, read back and compared; "));
  EXPECT_TRUE(listener.lines()[3].starts_with(" 4. the peer has written: all 131072 bytes in this process are"));
  EXPECT_EQ(connector.lines().back(), "It held: 128 KiB of another process were written and read, every byte.");
  EXPECT_EQ(listener.lines().back(),
            "It held: another process wrote 128 KiB into this memory, and every byte is as it says.");
}

TEST_F(RnicctlPingpong, JsonHasTheFiguresAndEitherSideMayStartFirst) {
  const UniqueSocket reserved = NewSocket();
  const uint16_t port = Bind(reserved);
  const auto connector = Start({"--connect=" + At(port), "--json", "--rounds=3"});
  const auto listener = Start({"--listen=" + At(port), "--json"});
  const RnicctlRun connected = Finish(*connector, 6 * kTimeout);
  const RnicctlRun listened = Finish(*listener, 6 * kTimeout);
  EXPECT_EQ(connected.exit_code, 0) << connected.errors << connected.output;
  EXPECT_EQ(listened.exit_code, 0) << listened.errors << listened.output;
  EXPECT_EQ(connected.json()["role"], "connector");
  EXPECT_EQ(connected.json()["bytes"], 131072);
  EXPECT_EQ(connected.json()["rounds"], 3);
  EXPECT_GT(connected.json()["write_microseconds"], 0);
  EXPECT_GT(connected.json()["read_microseconds"], 0);
  EXPECT_EQ(connected.json()["held"], true);
  EXPECT_EQ(listened.json()["role"], "listener");
  EXPECT_EQ(listened.json()["held"], true);
  EXPECT_EQ(listened.json()["steps"].size(), 5u);
}

TEST_F(RnicctlPingpong, LyingTokenIsRefusedByTheCard) {
  const uint16_t port = StartListener();
  const Liar liar;
  const auto connector = Start({"--connect=" + At(liar.port())});
  liar.Relay(port, [](Json& message) {
    if (message.contains("remote_token")) {
      message["remote_token"] = message["remote_token"].get<uint32_t>() ^ 1;
    }
  });
  ExpectFailure(*connector, "(a write) (REMOTE_ACCESS_REFUSED, STATUS_ACCESS_VIOLATION)");
  ExpectFailure(listener(), "the peer hung up instead of sending the seed of what it wrote");
}

TEST_F(RnicctlPingpong, LyingAboutWhatWasWrittenIsFound) {
  const uint16_t port = StartListener();
  const Liar liar;
  const auto connector = Start({"--connect=" + At(liar.port())});
  liar.Relay(port, [](Json& message) {
    if (message.contains("seed")) {
      message["seed"] = message["seed"].get<uint32_t>() ^ 1;
    }
  });
  ExpectFailure(listener(), "after the peer's writes byte 0 of page 0 is ");
  ExpectFailure(*connector, "the peer hung up instead of sending the seed of its own bytes");
}

TEST_F(RnicctlPingpong, SidesOfDifferentSizesSaySo) {
  const uint16_t port = StartListener();
  ExpectFailure(*Start("64KiB", {"--connect=" + At(port)}),
                "the peer offers 131072 bytes, and this side has 65536: give both the same --size");
  ExpectFailure(listener(), "the peer hung up instead of sending the seed of what it wrote");
}

class RnicctlPingpongTwoAdapters : public RnicctlPingpong {
 protected:
  RnicctlPingpongTwoAdapters() : RnicctlPingpong(TwoAdapterFlags()) {}
};

TEST_F(RnicctlPingpongTwoAdapters, EachSideHasACardOfItsOwn) {
  const uint16_t port = StartListener(OtherAdapterUnderTest());
  const RnicctlRun connector =
      Finish(*Start({"--connect=" + At(port), "--adapter=" + AdapterUnderTest()}), 6 * kTimeout);
  EXPECT_EQ(connector.exit_code, 0) << connector.errors << connector.output;
  EXPECT_EQ(Finish(listener(), 6 * kTimeout).exit_code, 0);
}

}  // namespace
}  // namespace rnicd::test
