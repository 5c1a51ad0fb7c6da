#include "client/cpp/channel/fd_socket.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <optional>
#include <tuple>

#include "base/clock.h"
#include "base/status.h"
#include "base/waiting_fixture.h"
#include "client/cpp/channel/fake_fd_server_fixture.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDeadline{5'000};
constexpr milliseconds kShortDeadline{100};

UniqueFd MemoryFile() { return UniqueFd(memfd_create("test", MFD_CLOEXEC)); }

ino_t InodeOf(int fd) {
  struct stat file = {};
  EXPECT_EQ(fstat(fd, &file), 0);
  return file.st_ino;
}

// Counts those of this process. Threads of gRPC open and close others meanwhile.
size_t DescriptorsOf(int file) {
  struct stat wanted = {};
  EXPECT_EQ(fstat(file, &wanted), 0);
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<size_t>(std::count_if(begin(entries), end(entries), [&](const auto& entry) {
    struct stat found = {};
    return stat(entry.path().c_str(), &found) == 0 && found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino;
  }));
}

class FdSocketTest : public testing::Test {
 protected:
  // Answers every request with this packet and these descriptors.
  void ServeReply(std::string packet, std::vector<int> fds) {
    Serve([this, packet = std::move(packet), fds = std::move(fds)](int connection) {
      std::tie(request_, received_) = ReceiveFdRequest(connection);
      SendFdPacket(connection, packet, fds);
    });
  }
  void Serve(std::function<void(int)> serve) { server_.emplace(path(), std::move(serve)); }
  std::string path() const { return directory_.path() + "/fd.sock"; }

  TemporaryDirectory directory_;
  v1::FdRequest request_;
  UniqueFd received_;
  std::optional<FakeFdServer> server_;
};

TEST_F(FdSocketTest, FetchedDescriptorIsTheServersFileAndIsCloseOnExec) {
  const UniqueFd file = MemoryFile();
  ServeReply("", {file.get()});
  const absl::StatusOr<UniqueFd> fetched = FetchDescriptor(path(), "0123456789abcdef", kDeadline);
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(InodeOf(fetched->get()), InodeOf(file.get()));
  EXPECT_NE(fcntl(fetched->get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(request_.fd_ticket(), "0123456789abcdef");
  EXPECT_EQ(request_.fd_count(), 0u);
}

TEST_F(FdSocketTest, SentDescriptorArrivesAndStaysOpenHere) {
  const UniqueFd file = MemoryFile();
  ServeReply("", {});
  ASSERT_TRUE(SendDescriptor(path(), "0123456789abcdef", file.get(), kDeadline).ok());
  server_.reset();
  EXPECT_EQ(InodeOf(received_.get()), InodeOf(file.get()));
  EXPECT_EQ(request_.fd_count(), 1u);
}

TEST_F(FdSocketTest, RefusalCarriesTheDaemonsReason) {
  v1::FdReply reply;
  reply.mutable_error()->set_reason(v1::ERROR_REASON_MEMORY_NOT_SEALABLE);
  reply.mutable_error()->set_field("fd");
  ServeReply(reply.SerializeAsString(), {});
  const UniqueFd file = MemoryFile();
  const absl::Status status = SendDescriptor(path(), "ticket", file.get(), kDeadline);
  EXPECT_TRUE(FailedWith(status, ErrorReason::MEMORY_NOT_SEALABLE)) << status;
  EXPECT_EQ(ErrorInfoOf(status).field, "fd");
}

// Refuses the first `count` connections, before their request is read, and then replies with a file.
std::function<void(int)> RefusingAtFirst(int count, uint32_t retry_after_ms, int file) {
  return [count, retry_after_ms, file](int connection) mutable {
    v1::FdReply reply;
    if (count-- > 0) {
      reply.mutable_error()->set_reason(v1::ERROR_REASON_RATE_LIMITED);
      reply.mutable_error()->set_retry_after_ms(retry_after_ms);
      SendFdPacket(connection, reply.SerializeAsString(), {});
      return;
    }
    ReceiveFdRequest(connection);
    SendFdPacket(connection, "", {file});
  };
}

TEST_F(FdSocketTest, ARefusedConnectionIsMadeAgainAfterTheTimeThatTheDaemonNames) {
  const UniqueFd file = MemoryFile();
  Serve(RefusingAtFirst(20, 1, file.get()));
  const absl::StatusOr<UniqueFd> fetched = FetchDescriptor(path(), "ticket", kDeadline);
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(InodeOf(fetched->get()), InodeOf(file.get()));
}

TEST_F(FdSocketTest, AWaitBeyondTheDeadlineIsARefusalAtOnce) {
  Serve(RefusingAtFirst(1, 3'600'000, -1));
  const absl::Status status = FetchDescriptor(path(), "ticket", kDeadline).status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::RATE_LIMITED)) << status;
  EXPECT_EQ(ErrorInfoOf(status).retry_after_ms, 3'600'000u);
  EXPECT_FALSE(IsTransportFailure(status));
}

TEST_F(FdSocketTest, HangUpIsNotTakenForAnEmptyReply) {
  Serve([](int connection) { ReceiveFdRequest(connection); });
  const UniqueFd file = MemoryFile();
  const absl::Status status = SendDescriptor(path(), "ticket", file.get(), kDeadline);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(IsTransportFailure(status));
}

TEST_F(FdSocketTest, SurplusDescriptorsAreRefusedAndDoNotLeak) {
  const UniqueFd file = MemoryFile();
  for (const size_t count : {2u, 3u, 8u}) {
    server_.reset();
    std::filesystem::remove(path());
    ServeReply("", std::vector<int>(count, file.get()));
    EXPECT_TRUE(IsTransportFailure(FetchDescriptor(path(), "ticket", kDeadline).status())) << count;
    server_.reset();
    EXPECT_EQ(DescriptorsOf(file.get()), 1u) << count;
  }
}

TEST_F(FdSocketTest, DescriptorNobodyAskedForIsRefusedAndDoesNotLeak) {
  const UniqueFd file = MemoryFile();
  Serve([&file](int connection) {
    ReceiveFdRequest(connection);
    SendFdPacket(connection, "", {file.get()});
  });
  EXPECT_TRUE(IsTransportFailure(SendDescriptor(path(), "ticket", file.get(), kDeadline)));
  server_.reset();
  EXPECT_EQ(DescriptorsOf(file.get()), 1u);
}

TEST_F(FdSocketTest, ReplyWithoutTheDescriptorIsRefused) {
  ServeReply("", {});
  EXPECT_TRUE(IsTransportFailure(FetchDescriptor(path(), "ticket", kDeadline).status()));
}

TEST_F(FdSocketTest, GarbageAndOversizedRepliesAreRefused) {
  for (const std::string& packet : {std::string("\xff\xff\xff\xff"), std::string(5000, 'x')}) {
    server_.reset();
    std::filesystem::remove(path());
    ServeReply(packet, {});
    EXPECT_TRUE(IsTransportFailure(FetchDescriptor(path(), "ticket", kDeadline).status()));
  }
}

TEST_F(FdSocketTest, SilentServerRunsIntoTheDeadline) {
  std::atomic<bool> release = false;
  Serve([&release](int) { release.wait(false); });
  EXPECT_EQ(FetchDescriptor(path(), "ticket", kShortDeadline).status().code(), absl::StatusCode::kDeadlineExceeded);
  release = true;
  release.notify_all();
  server_.reset();
}

// As long as the connection is open the daemon may hold the file, too. A daemon that keeps it open delays a reply that
// has arrived at most until the deadline, and does not make it fail.
TEST_F(FdSocketTest, AnExchangeEndsWithItsConnection) {
  std::atomic<bool> release = false;
  const UniqueFd file = MemoryFile();
  Serve([&release, &file](int connection) {
    (void)ReceiveFdRequest(connection);
    SendFdPacket(connection, "", {file.get()});
    release.wait(false);
  });
  const Instant begin = Instant::clock::now();
  EXPECT_TRUE(FetchDescriptor(path(), "ticket", kShortDeadline).ok());
  EXPECT_GE(Instant::clock::now() - begin, kShortDeadline);
  release = true;
  release.notify_all();
  server_.reset();
}

TEST_F(FdSocketTest, SignalsNeitherFailNorExtendTheWait) {
  std::atomic<bool> release = false;
  Serve([&release](int) { release.wait(false); });
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  std::atomic<bool> finished = false;
  std::thread waiting([&] {
    EXPECT_EQ(FetchDescriptor(path(), "ticket", kShortDeadline).status().code(), absl::StatusCode::kDeadlineExceeded);
    finished = true;
  });
  // So often that a wait that restarts at each of them would never end.
  const auto signal = [&] { return finished || pthread_kill(waiting.native_handle(), SIGUSR1) != 0; };
  EXPECT_TRUE(Eventually(signal));
  waiting.join();
  release = true;
  release.notify_all();
  server_.reset();
}

TEST_F(FdSocketTest, NobodyListeningIsUnavailable) {
  EXPECT_EQ(FetchDescriptor(path(), "ticket", kDeadline).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(FdSocketTest, OverlongPathAndInvalidDescriptorAreRefusedHere) {
  const std::string overlong = "/tmp/" + std::string(200, 'x');
  EXPECT_TRUE(FailedWith(FetchDescriptor(overlong, "t", kDeadline).status(), ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_TRUE(FailedWith(SendDescriptor(path(), "t", -1, kDeadline), ErrorReason::FIELD_OUT_OF_RANGE));
}

}  // namespace
}  // namespace rnicd::inline client
