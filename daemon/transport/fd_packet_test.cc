#include "daemon/transport/fd_packet.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>
#include <vector>

#include "base/status.h"
#include "base/system/faulty_os.h"
#include "base/system/os.h"
#include "rnicd/v1/fd_channel.pb.h"

namespace rnicd::transport {
namespace {

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

std::string RequestBytes(uint32_t fd_count, size_t ticket_bytes = 16) {
  v1::FdRequest request;
  request.set_fd_ticket(std::string(ticket_bytes, 't'));
  request.set_fd_count(fd_count);
  return request.SerializeAsString();
}

class FdPacketTest : public ::testing::Test {
 protected:
  FdPacketTest() { Connect(); }
  void Connect() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    daemon_.Reset(ends[0]);
    client_.Reset(ends[1]);
  }

  // Sends a packet with `files` duplicates of one file attached.
  void Send(const std::string& bytes, size_t files,
            const UniqueFd& file = UniqueFd(memfd_create("sent", MFD_ALLOW_SEALING))) {
    std::vector<int> numbers(files, file.get());
    std::vector<char> control(CMSG_SPACE(files * sizeof(int)));
    iovec part = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (files > 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(files * sizeof(int));
      std::memcpy(CMSG_DATA(header), numbers.data(), files * sizeof(int));
    }
    ASSERT_EQ(sendmsg(client_.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size())) << strerror(errno);
  }
  // Receives a packet and the descriptor that it brings; invalid when it brings none.
  absl::StatusOr<UniqueFd> Receive() {
    RNICD_ASSIGN_OR_RETURN(const FdPacket packet, ReceiveFdPacket(daemon_.get()));
    return packet.brings_file ? TakeFile(daemon_.get(), SystemOs()) : UniqueFd();
  }
  // Receives, expects this reason, and that no descriptor stays open. Then begins anew: a packet may be left.
  void ExpectRefused(const std::string& bytes, size_t files, ErrorReason reason) {
    const size_t before = OpenDescriptors();
    Send(bytes, files);
    const absl::Status status = Receive().status();
    EXPECT_TRUE(FailedWith(status, reason)) << status << " with " << files << " files";
    EXPECT_EQ(OpenDescriptors(), before) << "with " << files << " files";
    Connect();
  }

  UniqueFd daemon_;
  UniqueFd client_;
};

TEST_F(FdPacketTest, ARequestWithoutADescriptorIsRead) {
  Send(RequestBytes(0), 0);
  const auto packet = ReceiveFdPacket(daemon_.get());
  ASSERT_TRUE(packet.ok()) << packet.status();
  EXPECT_FALSE(packet->brings_file);
  EXPECT_TRUE(std::all_of(packet->ticket.begin(), packet->ticket.end(), [](uint8_t byte) { return byte == 't'; }));
}

TEST_F(FdPacketTest, ARequestWithOneDescriptorBringsIt) {
  const size_t before = OpenDescriptors();
  {
    Send(RequestBytes(1), 1);
    const auto packet = ReceiveFdPacket(daemon_.get());
    ASSERT_TRUE(packet.ok()) << packet.status();
    EXPECT_TRUE(packet->brings_file);
    EXPECT_EQ(OpenDescriptors(), before) << "it stays where it is until it is wanted";
    const auto file = TakeFile(daemon_.get(), SystemOs());
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_NE(fcntl(file->get(), F_GETFD) & FD_CLOEXEC, 0) << "no child of the daemon inherits it";
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(FdPacketTest, ADescriptorThatIsNoMemoryFileIsClosedAtOnce) {
  const size_t before = OpenDescriptors();
  Send(RequestBytes(1), 1, UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  EXPECT_TRUE(FailedWith(Receive().status(), ErrorReason::MEMORY_NOT_MEMORY));
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(FdPacketTest, ADmabufIsTaken) {
  FaultyOs os{SystemOs()};
  const UniqueFd dmabuf(memfd_create("dmabuf", MFD_CLOEXEC));
  os.ReportAsDmabuf(dmabuf.get());
  Send(RequestBytes(1), 1, dmabuf);
  ASSERT_TRUE(ReceiveFdPacket(daemon_.get()).ok());
  EXPECT_TRUE(TakeFile(daemon_.get(), os).ok());
}

TEST_F(FdPacketTest, MoreDescriptorsThanOneAreAllClosed) {
  for (const size_t files : {2u, 3u, 10u, 253u}) {
    ExpectRefused(RequestBytes(1), files, ErrorReason::FD_COUNT_WRONG);
    ExpectRefused(RequestBytes(static_cast<uint32_t>(files)), files, ErrorReason::FD_COUNT_WRONG);
  }
}

TEST_F(FdPacketTest, AnAnnouncementThatIsNotTrueIsRefused) {
  ExpectRefused(RequestBytes(1), 0, ErrorReason::FD_COUNT_WRONG);
  ExpectRefused(RequestBytes(0), 1, ErrorReason::FD_COUNT_WRONG);
  ExpectRefused(RequestBytes(UINT32_MAX), 1, ErrorReason::FD_COUNT_WRONG);
}

TEST_F(FdPacketTest, ATicketOfAnotherLengthIsMalformed) {
  for (const size_t bytes : {0u, 1u, 15u, 17u, 2000u}) {
    ExpectRefused(RequestBytes(1, bytes), 1, ErrorReason::FD_PACKET_MALFORMED);
  }
}

TEST_F(FdPacketTest, GarbageIsMalformedAndItsDescriptorClosed) {
  std::mt19937 random(20260801);
  for (int round = 0; round < 200; ++round) {
    std::string bytes(1 + random() % 200, '\0');
    std::generate(bytes.begin(), bytes.end(), [&random] { return static_cast<char>(random()); });
    ExpectRefused(bytes, round % 2, ErrorReason::FD_PACKET_MALFORMED);
  }
}

TEST_F(FdPacketTest, HalfARequestIsMalformed) {
  const std::string whole = RequestBytes(1);
  for (size_t bytes = 1; bytes < 18; ++bytes) {
    ExpectRefused(whole.substr(0, bytes), 1, ErrorReason::FD_PACKET_MALFORMED);
  }
}

TEST_F(FdPacketTest, APacketAboveTheLimitIsMalformed) {
  ExpectRefused(RequestBytes(1, kMaxFdPacketBytes), 1, ErrorReason::FD_PACKET_MALFORMED);
  ExpectRefused(std::string(100000, 'x'), 0, ErrorReason::FD_PACKET_MALFORMED);
}

// An FdRequest without fields has no bytes.
TEST_F(FdPacketTest, AnEmptyPacketIsMalformed) {
  ExpectRefused("", 0, ErrorReason::FD_PACKET_MALFORMED);
  ExpectRefused("", 1, ErrorReason::FD_PACKET_MALFORMED);
}

TEST_F(FdPacketTest, ASocketThatIsClosedOrSilentIsUnavailable) {
  EXPECT_EQ(ReceiveFdPacket(daemon_.get()).status().code(), absl::StatusCode::kUnavailable);
  client_.Reset(-1);
  EXPECT_EQ(ReceiveFdPacket(daemon_.get()).status().code(), absl::StatusCode::kUnavailable);
}

// Receives the reply on the client's end; returns it with the number of its descriptors.
std::pair<v1::FdReply, size_t> ReceiveReply(int socket) {
  char bytes[kMaxFdPacketBytes];
  char control[CMSG_SPACE(4 * sizeof(int))];
  iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t size = recvmsg(socket, &message, MSG_DONTWAIT);
  v1::FdReply reply;
  EXPECT_GT(size, 0) << "a reply without bytes would read as the end";
  EXPECT_TRUE(reply.ParseFromArray(bytes, static_cast<int>(std::max<ssize_t>(size, 0))));
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) {
    return {reply, 0};
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  EXPECT_EQ(header->cmsg_len, CMSG_LEN(sizeof(int)));
  return {reply, UniqueFd(fd).valid() ? 1 : 0};
}

TEST_F(FdPacketTest, AReplyCarriesADescriptorOnlyWhenThereIsOne) {
  SendFdReply(daemon_.get(), UniqueFd(memfd_create("answer", 0)));
  EXPECT_EQ(ReceiveReply(client_.get()).second, 1u);
  SendFdReply(daemon_.get(), UniqueFd());
  const auto [reply, files] = ReceiveReply(client_.get());
  EXPECT_EQ(files, 0u);
  EXPECT_FALSE(reply.has_error());
}

TEST_F(FdPacketTest, AFailureIsRepliedWithItsReason) {
  SendFdReply(daemon_.get(), MakeError(ErrorReason::MEMORY_TOO_SHORT, "size"));
  const auto [reply, files] = ReceiveReply(client_.get());
  EXPECT_EQ(files, 0u);
  EXPECT_EQ(reply.error().reason(), v1::ERROR_REASON_MEMORY_TOO_SHORT);
  EXPECT_EQ(reply.error().field(), "size");
}

TEST_F(FdPacketTest, APeerThatIsGoneLosesItsReplyAndNothingElseHappens) {
  client_.Reset(-1);
  SendFdReply(daemon_.get(), UniqueFd(memfd_create("answer", 0)));
}

}  // namespace
}  // namespace rnicd::transport
