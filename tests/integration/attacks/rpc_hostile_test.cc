// The gRPC socket, addressed wrongly: bytes that are no gRPC, requests that make no sense, and floods.
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/half_call.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/calls/rpcs.h"
#include "tests/support/process/raw_socket.h"
#include "tests/support/process/wait.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

constexpr char kHttp2Preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr uint64_t kHugest = std::numeric_limits<uint64_t>::max();

class RpcHostile : public DaemonTest {
 protected:
  void ExpectServes() {
    TestSession session(daemon());
    EXPECT_NE(session.session_id(), 0u);
  }
};

TEST_F(RpcHostile, GarbageIsHungUpOn) {
  for (const std::string& path : {daemon().rpc_socket(), daemon().admin_socket()}) {
    for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\xff'),
                                     std::string(64, '\0'), std::string(kHttp2Preface) + std::string(64, '\xff')}) {
      const UniqueFd socket = ConnectUnix(path, SOCK_STREAM);
      ASSERT_TRUE(socket.valid());
      SendBytes(socket.get(), bytes);
      EXPECT_TRUE(HangsUp(socket.get()));
    }
  }
  ExpectServes();
}

TEST_F(RpcHostile, HalfAPrefaceAndAHangUpLeaveNothing) {
  for (size_t length = 0; length < sizeof(kHttp2Preface); length += 5) {
    const UniqueFd socket = ConnectUnix(daemon().rpc_socket(), SOCK_STREAM);
    ASSERT_TRUE(socket.valid());
    EXPECT_TRUE(SendBytes(socket.get(), std::string_view(kHttp2Preface, length)) || length == 0);
  }
  ExpectServes();
}

TEST_F(RpcHostile, HalfAMessageAndAHangUpLeaveNothing) {
  for (const char* path : {"/rnicd.v1.SessionService/OpenSession", "/rnicd.v1.MemoryService/RegisterMr", "/no/such"}) {
    // Ten bytes of a hundred; none of the largest message there can be; more than the largest that is taken.
    for (const auto& [claimed, sent] : {std::pair<uint32_t, uint32_t>{100, 10}, {UINT32_MAX, 0}, {5 << 20, 4096}}) {
      const UniqueFd socket = ConnectUnix(daemon().rpc_socket(), SOCK_STREAM);
      ASSERT_TRUE(socket.valid());
      EXPECT_TRUE(SendBytes(socket.get(), HalfCallBytes(path, claimed, sent)));
    }
  }
  ExpectServes();
}

TEST_F(RpcHostile, MessageOverTheSizeLimitIsRefused) {
  TestSession session(daemon());
  v1::RegisterMrRequest request = RegisterRequest(session.CreateMr(), {}, kPage);
  for (int count = 0; count < 300'000; ++count) {
    *request.add_mdl_chain() = MdlEntry(kHugest, kHugest, kHugest, kHugest);
  }
  EXPECT_EQ(session.Register(request).code, grpc::StatusCode::RESOURCE_EXHAUSTED);
  // The connection and the session are as they were.
  session.RegisterWhole(request.mr_id(), session.SealedMemory(kPage), kPage);
}

TEST_F(RpcHostile, LongestChainWorks) {
  constexpr uint64_t kEntries = 8192;
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(2 * kPage);
  std::vector<v1::MdlEntry> chain;
  // Alternating pages, so that no two neighbours are one run.
  for (uint64_t index = 0; index < kEntries; ++index) {
    chain.push_back(MdlEntry(memory, (index % 2) * kPage, kPage, kBase + index * kPage));
  }
  ExpectOk(session.Register(RegisterRequest(session.CreateMr(), chain, kEntries * kPage)));
  EXPECT_EQ(session.Use("registered_bytes").used(), kEntries * kPage);
}

// Two of many: daemon/core/memory/mdl_chain_test.cc has every way in which numbers can be wrong.
TEST_F(RpcHostile, ImpossibleNumbersAreRefusedWithTheirField) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(4 * kPage);
  const uint64_t mr = session.CreateMr();
  ExpectRefused(session.Register(RegisterRequest(mr, {MdlEntry(memory, 0, kHugest, kBase)}, 1)),
                ErrorReason::MDL_RANGE_OVERFLOW, "mdl_chain[0].virtual_address");
  const std::vector<v1::MdlEntry> gap = {MdlEntry(memory, 0, kPage, kBase),
                                         MdlEntry(memory, kPage, kPage, kBase + 2 * kPage)};
  ExpectRefused(session.Register(RegisterRequest(mr, gap, 2 * kPage)), ErrorReason::MDL_CHAIN_GAP,
                "mdl_chain[1].virtual_address");
  EXPECT_EQ(session.Use("pinned_bytes").used(), 0u);
  session.RegisterWhole(mr, memory, 4 * kPage);
}

class RpcSilence : public DaemonTest {
 protected:
  // The test's own connections have this time for their first call, too.
  RpcSilence() : DaemonTest({"--silent_connection_timeout_ms=" + std::to_string(600 * kSlowness)}) {}
};

TEST_F(RpcSilence, SilentConnectionIsDropped) {
  for (const std::string& path : {daemon().rpc_socket(), daemon().admin_socket()}) {
    const UniqueFd socket = ConnectUnix(path, SOCK_STREAM);
    ASSERT_TRUE(socket.valid());
    EXPECT_TRUE(HangsUp(socket.get()));
  }
}

TEST_F(RpcSilence, ConnectionThatOnlySaysHelloIsDropped) {
  for (const size_t length : {size_t{10}, sizeof(kHttp2Preface) - 1}) {
    const UniqueFd socket = ConnectUnix(daemon().rpc_socket(), SOCK_STREAM);
    ASSERT_TRUE(socket.valid());
    EXPECT_TRUE(SendBytes(socket.get(), std::string_view(kHttp2Preface, length)));
    EXPECT_TRUE(HangsUp(socket.get()));
  }
}

// A call that never gets its message is silence too.
TEST_F(RpcSilence, ConnectionWithHalfACallIsDropped) {
  for (const uint32_t claimed : {100u, UINT32_MAX}) {
    const UniqueFd socket = ConnectUnix(daemon().rpc_socket(), SOCK_STREAM);
    ASSERT_TRUE(socket.valid());
    EXPECT_TRUE(SendBytes(socket.get(), HalfCallBytes("/rnicd.v1.SessionService/OpenSession", claimed, 10)));
    EXPECT_TRUE(HangsUp(socket.get()));
  }
}

// The silence timeout only applies without a session: a client with one may be silent forever.
TEST_F(RpcSilence, IdleSessionIsKept) {
  TestSession session(daemon());
  const UniqueFd silent_for_less_time = ConnectUnix(daemon().rpc_socket(), SOCK_STREAM);
  EXPECT_TRUE(HangsUp(silent_for_less_time.get()));
  EXPECT_EQ(session.Call(&SessionStub::GetSession, {}).response.session_id(), session.session_id());
}

class RpcFlood : public DaemonTest {
 protected:
  RpcFlood() : DaemonTest({"--max_connections_per_uid=16"}) {}
};

TEST_F(RpcFlood, ConnectionsAboveTheUidsShareAreRefused) {
  constexpr int kAttempts = 100;
  int refused = 0;
  {
    std::vector<UniqueFd> sockets;
    for (int count = 0; count < kAttempts; ++count) {
      sockets.push_back(ConnectUnix(daemon().rpc_socket(), SOCK_STREAM));
    }
    // The newest ones are over the limit.
    for (int index = kAttempts - 1; index >= 32; --index) {
      refused += !sockets[static_cast<size_t>(index)].valid() || HangsUp(sockets[static_cast<size_t>(index)].get());
    }
    EXPECT_EQ(refused, kAttempts - 32);
  }
  // The flood is over; the next client is served.
  ExpectNothingHeld(daemon(), idle());
  EXPECT_TRUE(Eventually([&] { return RawClient(daemon().rpc_socket()).Call(&SessionStub::OpenSession, {}).ok(); }))
      << "a process that was refused is turned away only for a moment";
}

// gRPC's own listener never recovers from this; the daemon's must.
TEST(RpcDescriptors, RunningOutOfThemIsSurvived) {
  auto started = DaemonProcess::Start({.descriptors_max = 64});
  ASSERT_TRUE(started.ok()) << started.status();
  DaemonProcess& daemon = **started;
  const IdleState idle = MeasureIdle(daemon);
  {
    std::vector<UniqueFd> sockets;
    for (int count = 0; count < 300; ++count) {
      sockets.push_back(ConnectUnix(daemon.rpc_socket(), SOCK_STREAM));
    }
    EXPECT_TRUE(HangsUp(sockets.back().get()));
  }
  ExpectNothingHeld(daemon, idle);
  {
    TestSession session(daemon);
    session.RegisterWhole(session.CreateMr(), session.SealedMemory(kPage), kPage);
  }
  ExpectNothingHeld(daemon, idle);
  const absl::Status stopped = daemon.Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

}  // namespace
}  // namespace rnicd::test
