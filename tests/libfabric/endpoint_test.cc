#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "base/files/unique_fd.h"
#include "client/c/rnicd.h"
#include "client/libfabric/limits.h"
#include "tests/libfabric/fabric_pair.h"
#include "tests/support/process/daemon_process.h"

// Connected endpoints of the provider, by the calls that libfabric makes of it.
namespace rnicd::fi {
namespace {

class Messages : public LibfabricTest {};
class Rma : public LibfabricTest {};
class Ends : public LibfabricTest {};

TEST_F(Messages, ArriveWithTheirLengthAndContents) {
  Pair pair;
  constexpr size_t kBytes = size_t{1} << 20;
  const Pages sent(kBytes, 7);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, kBytes}) {
    const Pages received(kBytes);
    const Owned<fid_mr> from = pair.client.Register(sent.data(), kBytes, FI_SEND);
    const Owned<fid_mr> into = pair.server.Register(received.data(), kBytes, FI_RECV);
    ASSERT_EQ(fi_recv(pair.server_endpoint.get(), received.data(), kBytes, fi_mr_desc(into.get()), 0, Context(1)), 0);
    ASSERT_EQ(fi_send(pair.client_endpoint.get(), sent.data(), bytes, fi_mr_desc(from.get()), 0, Context(2)), 0);
    const fi_cq_data_entry arrived = pair.server.NextCompletion();
    EXPECT_EQ(arrived.op_context, Context(1));
    EXPECT_EQ(arrived.flags, FI_RECV | FI_MSG);
    EXPECT_EQ(arrived.len, bytes);
    EXPECT_TRUE(received.Equals(sent, bytes));
    const fi_cq_data_entry left = pair.client.NextCompletion();
    EXPECT_EQ(left.op_context, Context(2));
    EXPECT_EQ(left.flags, FI_SEND | FI_MSG);
  }
}

TEST_F(Messages, CarryData) {
  Pair pair;
  const Pages received(4096);
  const Owned<fid_mr> into = pair.server.Register(received.data(), 4096, FI_RECV);
  const Pages sent(4096);
  const Owned<fid_mr> from = pair.client.Register(sent.data(), 4096, FI_SEND);
  for (int index = 0; index < 3; ++index) {
    ASSERT_EQ(fi_recv(pair.server_endpoint.get(), received.data(), 4096, fi_mr_desc(into.get()), 0, nullptr), 0);
  }
  constexpr uint64_t kData = 0x0123456789abcdef;
  ASSERT_EQ(fi_senddata(pair.client_endpoint.get(), sent.data(), 0, fi_mr_desc(from.get()), kData, 0, nullptr), 0);
  ASSERT_EQ(fi_injectdata(pair.client_endpoint.get(), "abc", 3, kData + 1, 0), 0);
  ASSERT_EQ(fi_inject(pair.client_endpoint.get(), "ab", 2, 0), 0);
  const std::array<uint64_t, 3> flags = {FI_REMOTE_CQ_DATA, FI_REMOTE_CQ_DATA, 0};
  const std::array<uint64_t, 3> data = {kData, kData + 1, 0};
  const std::array<size_t, 3> bytes = {0, 3, 2};
  for (size_t index = 0; index < 3; ++index) {
    const fi_cq_data_entry arrived = pair.server.NextCompletion();
    EXPECT_EQ(arrived.flags, FI_RECV | FI_MSG | flags[index]);
    EXPECT_EQ(arrived.data, data[index]);
    EXPECT_EQ(arrived.len, bytes[index]);
  }
}

// Far more than the queue holds: what is silent is counted until something completes.
TEST_F(Messages, TenThousandInjectedNeedNoCompletions) {
  Pair pair;
  const Pages received(4096);
  const Owned<fid_mr> into = pair.server.Register(received.data(), 4096, FI_RECV);
  fi_cq_data_entry entry;
  uint32_t expected = 0;
  const auto receive = [&] {
    while (fi_cq_read(pair.server.completions.get(), &entry, 1) == 1) {
      uint32_t number = 0;
      std::memcpy(&number, received.data() + size_t{8} * (expected % 64), sizeof(number));
      EXPECT_EQ(number, expected++);
      unsigned char* const again = received.data() + size_t{8} * ((expected - 1) % 64);
      ASSERT_EQ(fi_recv(pair.server_endpoint.get(), again, 8, fi_mr_desc(into.get()), 0, nullptr), 0);
    }
  };
  for (size_t index = 0; index < 64; ++index) {
    ASSERT_EQ(fi_recv(pair.server_endpoint.get(), received.data() + 8 * index, 8, fi_mr_desc(into.get()), 0, nullptr),
              0);
  }
  for (uint32_t number = 0; number < 10000; ++number) {
    ssize_t result = 0;
    while ((result = fi_inject(pair.client_endpoint.get(), &number, sizeof(number), 0)) == -FI_EAGAIN) {
      EXPECT_EQ(fi_cq_read(pair.client.completions.get(), &entry, 1), -FI_EAGAIN);
      receive();
    }
    ASSERT_EQ(result, 0);
  }
  EXPECT_TRUE(test::Eventually([&] {
    receive();
    return expected == 10000;
  }));
}

// Receives are posted several at a time, but none is kept back while the peer waits for it.
TEST_F(Messages, EachReceiveIsUsedThoughNoneIsAdded) {
  const Info hints = Hints();
  hints->rx_attr->size = 128;
  Pair pair(hints.get());
  constexpr size_t kReceives = 125;
  const Pages received(4096);
  const Owned<fid_mr> into = pair.server.Register(received.data(), 4096, FI_RECV);
  for (size_t index = 0; index < kReceives; ++index) {
    ASSERT_EQ(fi_recv(pair.server_endpoint.get(), received.data(), 8, fi_mr_desc(into.get()), 0, Context(index)), 0);
  }
  fi_cq_data_entry none;
  for (size_t index = 0; index < kReceives; ++index) {
    ssize_t result = 0;
    while ((result = fi_inject(pair.client_endpoint.get(), "x", 1, 0)) == -FI_EAGAIN) {
      fi_cq_read(pair.client.completions.get(), &none, 1);
    }
    ASSERT_EQ(result, 0);
  }
  for (size_t index = 0; index < kReceives; ++index) {
    EXPECT_EQ(pair.server.NextCompletion().op_context, Context(index));
  }
}

TEST_F(Messages, AreRefusedWhileTheQueueIsFull) {
  Pair pair;
  const Pages buffer(4096);
  const Owned<fid_mr> from = pair.client.Register(buffer.data(), 4096, FI_SEND);
  // Nobody receives.
  for (int index = 0; index < 64; ++index) {
    ASSERT_EQ(fi_send(pair.client_endpoint.get(), buffer.data(), 8, fi_mr_desc(from.get()), 0, nullptr), 0);
  }
  EXPECT_EQ(fi_send(pair.client_endpoint.get(), buffer.data(), 8, fi_mr_desc(from.get()), 0, nullptr), -FI_EAGAIN);
}

TEST_F(Messages, SelectiveCompletionReportsWhatAsksForIt) {
  Pair pair(nullptr, FI_SELECTIVE_COMPLETION);
  const Pages sent(4096);
  const Pages received(4096);
  const Owned<fid_mr> from = pair.client.Register(sent.data(), 4096, FI_SEND);
  const Owned<fid_mr> into = pair.server.Register(received.data(), 4096, FI_RECV);
  iovec vector = {received.data(), 8};
  void* descriptor = fi_mr_desc(into.get());
  const auto message = [&](void* context) {
    return fi_msg{.msg_iov = &vector, .desc = &descriptor, .iov_count = 1, .addr = 0, .context = context, .data = 0};
  };
  for (uintptr_t number = 1; number <= 2; ++number) {
    const fi_msg receive = message(Context(number));
    ASSERT_EQ(fi_recvmsg(pair.server_endpoint.get(), &receive, number == 2 ? FI_COMPLETION : 0), 0);
  }
  vector.iov_base = sent.data();
  descriptor = fi_mr_desc(from.get());
  for (uintptr_t number = 1; number <= 2; ++number) {
    const fi_msg send = message(Context(number));
    ASSERT_EQ(fi_sendmsg(pair.client_endpoint.get(), &send, number == 2 ? FI_COMPLETION : 0), 0);
  }
  EXPECT_EQ(pair.server.NextCompletion().op_context, Context(2));
  EXPECT_EQ(pair.client.NextCompletion().op_context, Context(2));
}

TEST_F(Messages, LongerThanTheReceiveEndIt) {
  Pair pair;
  const Pages buffer(8192);
  const Owned<fid_mr> from = pair.client.Register(buffer.data(), 4096, FI_SEND);
  const Owned<fid_mr> into = pair.server.Register(buffer.data() + 4096, 4096, FI_RECV);
  ASSERT_EQ(fi_recv(pair.server_endpoint.get(), buffer.data() + 4096, 8, fi_mr_desc(into.get()), 0, Context(1)), 0);
  ASSERT_EQ(fi_send(pair.client_endpoint.get(), buffer.data(), 9, fi_mr_desc(from.get()), 0, Context(2)), 0);
  const fi_cq_err_entry error = pair.server.NextError();
  EXPECT_EQ(error.err, FI_ETRUNC);
  EXPECT_EQ(error.op_context, Context(1));
  EXPECT_STREQ(fi_cq_strerror(pair.server.completions.get(), error.prov_errno, nullptr, nullptr, 0),
               "RECEIVE_TOO_SHORT");
  EXPECT_EQ(pair.client.NextError().op_context, Context(2));
}

// A program's own epoll sleeps until something arrives.
TEST_F(Messages, WakeWhoeverWaitsForTheDescriptor) {
  Pair pair;
  const Pages buffer(4096);
  const Owned<fid_mr> into = pair.server.Register(buffer.data(), 4096, FI_RECV);
  ASSERT_EQ(fi_recv(pair.server_endpoint.get(), buffer.data(), 8, fi_mr_desc(into.get()), 0, Context(1)), 0);
  int descriptor = -1;
  ASSERT_EQ(fi_control(&pair.server.completions->fid, FI_GETWAIT, &descriptor), 0);
  fid* const waited = &pair.server.completions->fid;
  fid* objects[] = {waited};
  ASSERT_EQ(fi_trywait(pair.server.fabric.get(), objects, 1), 0);
  ASSERT_EQ(fi_inject(pair.client_endpoint.get(), "x", 1, 0), 0);
  epoll_event ready;
  EXPECT_EQ(epoll_wait(descriptor, &ready, 1, static_cast<int>(test::kTimeout.count())), 1);
  EXPECT_EQ(pair.server.NextCompletion().op_context, Context(1));
}

TEST_F(Rma, MovesBytesBothWays) {
  Pair pair;
  constexpr size_t kBytes = size_t{1} << 20;
  const Pages target(kBytes, 3);
  const Pages source(kBytes, 9);
  const Pages sink(kBytes);
  const Owned<fid_mr> remote = pair.server.Register(target.data(), kBytes, FI_REMOTE_READ | FI_REMOTE_WRITE);
  const Owned<fid_mr> from = pair.client.Register(source.data(), kBytes, FI_WRITE);
  const Owned<fid_mr> into = pair.client.Register(sink.data(), kBytes, FI_READ);
  const auto address = reinterpret_cast<uintptr_t>(target.data());
  ASSERT_EQ(fi_read(pair.client_endpoint.get(), sink.data(), kBytes, fi_mr_desc(into.get()), 0, address,
                    fi_mr_key(remote.get()), Context(1)),
            0);
  EXPECT_EQ(pair.client.NextCompletion().flags, FI_READ | FI_RMA);
  EXPECT_TRUE(sink.Equals(target, kBytes));
  ASSERT_EQ(fi_write(pair.client_endpoint.get(), source.data(), kBytes, fi_mr_desc(from.get()), 0, address,
                     fi_mr_key(remote.get()), Context(2)),
            0);
  EXPECT_EQ(pair.client.NextCompletion().flags, FI_WRITE | FI_RMA);
  EXPECT_TRUE(target.Equals(source, kBytes));
  ASSERT_EQ(fi_inject_write(pair.client_endpoint.get(), "hello", 5, 0, address, fi_mr_key(remote.get())), 0);
  EXPECT_TRUE(test::Eventually([&] { return std::memcmp(target.data(), "hello", 5) == 0; }));
}

TEST_F(Rma, WriteWithDataTakesAReceiveOfThePeer) {
  Pair pair;
  const Pages target(4096);
  const Pages source(4096, 9);
  const Owned<fid_mr> remote = pair.server.Register(target.data(), 4096, FI_REMOTE_WRITE | FI_RECV);
  const Owned<fid_mr> from = pair.client.Register(source.data(), 4096, FI_WRITE);
  ASSERT_EQ(fi_recv(pair.server_endpoint.get(), nullptr, 0, nullptr, 0, Context(1)), 0);
  ASSERT_EQ(fi_writedata(pair.client_endpoint.get(), source.data(), 4096, fi_mr_desc(from.get()), 77, 0,
                         reinterpret_cast<uintptr_t>(target.data()), fi_mr_key(remote.get()), Context(2)),
            0);
  const fi_cq_data_entry arrived = pair.server.NextCompletion();
  EXPECT_EQ(arrived.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(arrived.op_context, Context(1));
  EXPECT_EQ(arrived.data, 77U);
  EXPECT_EQ(arrived.len, 4096U);
  EXPECT_TRUE(target.Equals(source, 4096));
  EXPECT_EQ(pair.client.NextCompletion().op_context, Context(2));
}

TEST_F(Rma, WithAKeyThatIsNotValidFailsOnceAndSaysWhy) {
  Pair pair;
  const Pages source(4096);
  const Owned<fid_mr> from = pair.client.Register(source.data(), 4096, FI_WRITE);
  ASSERT_EQ(fi_writedata(pair.client_endpoint.get(), source.data(), 8, fi_mr_desc(from.get()), 1, 0,
                         reinterpret_cast<uintptr_t>(source.data()), 0xffff0001, Context(1)),
            0);
  const fi_cq_err_entry error = pair.client.NextError();
  EXPECT_EQ(error.err, FI_EACCES);
  EXPECT_EQ(error.op_context, Context(1));
  EXPECT_STREQ(fi_cq_strerror(pair.client.completions.get(), error.prov_errno, nullptr, nullptr, 0),
               "REMOTE_ACCESS_REFUSED");
  fi_cq_data_entry none;
  EXPECT_EQ(fi_cq_read(pair.client.completions.get(), &none, 1), -FI_EAGAIN);
}

// The soft card takes 1 GiB.
TEST_F(Rma, OfMoreThanTheCardTakesIsRefusedAndTheEndpointLives) {
  Pair pair;
  const Pages pages(4096);
  const Owned<fid_mr> region = pair.client.Register(pages.data(), 4096, FI_WRITE | FI_SEND);
  fid_ep* const endpoint = pair.client_endpoint.get();
  EXPECT_EQ(fi_write(endpoint, pages.data(), size_t{1} << 30, fi_mr_desc(region.get()), 0, 0, 1, Context(1)),
            -FI_EMSGSIZE);
  EXPECT_EQ(fi_send(endpoint, pages.data(), size_t{1} << 30, fi_mr_desc(region.get()), 0, Context(2)), -FI_EMSGSIZE);
  ASSERT_EQ(fi_recv(pair.server_endpoint.get(), nullptr, 0, nullptr, 0, Context(1)), 0);
  ASSERT_EQ(fi_send(endpoint, nullptr, 0, nullptr, 0, Context(3)), 0);
  EXPECT_EQ(pair.client.NextCompletion().op_context, Context(3));
}

TEST_F(Ends, InjectionThatFailsIsReportedToNobody) {
  Pair pair;
  ASSERT_EQ(fi_inject_write(pair.client_endpoint.get(), "x", 1, 0, 4096, 0xffff0001), 0);
  const Pages buffer(4096);
  const Owned<fid_mr> from = pair.client.Register(buffer.data(), 4096, FI_SEND);
  // Behind it everything is flushed; this is the first that the program hears of.
  ASSERT_EQ(fi_send(pair.client_endpoint.get(), buffer.data(), 8, fi_mr_desc(from.get()), 0, Context(1)), 0);
  const fi_cq_err_entry error = pair.client.NextError();
  EXPECT_EQ(error.op_context, Context(1));
  EXPECT_EQ(error.err, FI_ECANCELED);
}

TEST_F(Ends, ReceivesOfAClosedEndpointAreCanceledWithTheirContexts) {
  Pair pair;
  const Pages buffer(4096);
  const Owned<fid_mr> into = pair.server.Register(buffer.data(), 4096, FI_RECV);
  for (uintptr_t number = 1; number <= 3; ++number) {
    ASSERT_EQ(fi_recv(pair.server_endpoint.get(), buffer.data(), 8, fi_mr_desc(into.get()), 0, Context(number)), 0);
  }
  pair.server_endpoint.reset();
  for (uintptr_t number = 1; number <= 3; ++number) {
    const fi_cq_err_entry error = pair.server.NextError();
    EXPECT_EQ(error.err, FI_ECANCELED);
    EXPECT_EQ(error.op_context, Context(number));
  }
}

TEST_F(Ends, PeersEndIsAnEventAndFlushes) {
  Pair pair;
  const Pages buffer(4096);
  const Owned<fid_mr> into = pair.server.Register(buffer.data(), 4096, FI_RECV);
  ASSERT_EQ(fi_recv(pair.server_endpoint.get(), buffer.data(), 8, fi_mr_desc(into.get()), 0, Context(1)), 0);
  pair.client_endpoint.reset();
  EXPECT_EQ(pair.server.NextEvent(), static_cast<uint32_t>(FI_SHUTDOWN));
  EXPECT_EQ(pair.server.NextError().op_context, Context(1));
}

TEST_F(Ends, ShutdownIsAnEventAtBothEndsAndFlushes) {
  Pair pair;
  const Pages buffer(4096);
  const Owned<fid_mr> into = pair.client.Register(buffer.data(), 4096, FI_RECV);
  ASSERT_EQ(fi_recv(pair.client_endpoint.get(), buffer.data(), 8, fi_mr_desc(into.get()), 0, Context(1)), 0);
  ASSERT_EQ(fi_shutdown(pair.client_endpoint.get(), 0), 0);
  EXPECT_EQ(pair.server.NextEvent(), static_cast<uint32_t>(FI_SHUTDOWN));
  EXPECT_EQ(pair.client.NextEvent(), static_cast<uint32_t>(FI_SHUTDOWN));
  EXPECT_EQ(pair.client.NextError().op_context, Context(1));
}

// A daemon of its own, which is killed.
TEST(DaemonThatDies, EndsWhatIsOutstandingAndIsAnEvent) {
  const absl::StatusOr<std::unique_ptr<test::DaemonProcess>> daemon = test::DaemonProcess::Start();
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  setenv("RNICD_SOCKET_DIR", (*daemon)->socket_dir().c_str(), 1);
  Pair pair;
  const Pages buffer(4096);
  const Owned<fid_mr> into = pair.server.Register(buffer.data(), 4096, FI_RECV);
  for (uintptr_t number = 1; number <= 3; ++number) {
    ASSERT_EQ(fi_recv(pair.server_endpoint.get(), buffer.data(), 8, fi_mr_desc(into.get()), 0, Context(number)), 0);
  }
  (*daemon)->KillHard();
  // Where no transmit has failed the queue's own error comes first, which RxM does not keep to itself.
  fi_cq_data_entry entry = {};
  EXPECT_EQ(fi_cq_sread(pair.server.completions.get(), &entry, 1, nullptr, -1), -FI_ECONNRESET);
  for (uintptr_t number = 1; number <= 3; ++number) {
    EXPECT_EQ(pair.server.NextError().op_context, Context(number));
  }
  EXPECT_EQ(pair.server.NextEvent(), static_cast<uint32_t>(FI_SHUTDOWN));
  EXPECT_LT(fi_inject(pair.server_endpoint.get(), "x", 1, 0), 0);
}

}  // namespace
}  // namespace rnicd::fi
