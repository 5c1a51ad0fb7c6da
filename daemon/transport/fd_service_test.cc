#include "daemon/transport/fd_service.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/core/session/core_fixture_test.h"
#include "daemon/transport/sent_descriptor_test.h"
#include "rnicd/v1/fd_channel.pb.h"

namespace rnicd::transport {
namespace {

constexpr uint64_t kPage = 4096;
const std::string kOwner = "pod of the client";

class FdServiceTest : public ::testing::Test {
 protected:
  // A admitted with this packet in its socket; `theirs` becomes its client's end.
  AdmittedConnection AdmittedWith(const std::string& ticket, int fd, UniqueFd& theirs) {
    std::array<int, 2> ends = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    theirs.Reset(ends[1]);
    v1::FdRequest request;
    request.set_fd_ticket(ticket);
    request.set_fd_count(1);
    EXPECT_TRUE(SendWith(theirs.get(), request.SerializeAsString(), fd));
    auto socket = std::make_shared<ClientSocket>(UniqueSocket(ends[0]), SocketKind{.door = Door::kFd}, *bulkhead_);
    socket->SetOwner(kOwner);
    return {.socket = std::move(socket), .peer = {.caller = core::CallerNumbered(1), .process = {}}};
  }
  std::string ImportTicket() {
    const auto import = owner_.session->Begin()->memory().Import(kPage);
    EXPECT_TRUE(import.ok()) << import.status();
    return {import->ticket.begin(), import->ticket.end()};
  }
  static v1::FdReply ReplyTo(const UniqueFd& client) {
    std::array<char, 4096> bytes;
    const ssize_t size = recv(client.get(), bytes.data(), bytes.size(), 0);
    v1::FdReply reply;
    EXPECT_TRUE(size > 0 && reply.ParseFromArray(bytes.data(), static_cast<int>(size)));
    return reply;
  }
  void Serve(const AdmittedConnection& admitted) { ServeFdPacket(*handover_, admitted); }
  void ExpectOthersAreServed() {
    std::promise<void> served;
    bulkhead_->Run("other", [&served] { served.set_value(); });
    served.get_future().wait();
  }

  core::World world_;
  core::Owner owner_{world_};
  const SteadyClock clock_;
  std::optional<door::Bulkhead> bulkhead_{std::in_place, clock_,
                                          door::Bulkhead::Limits{.threads = 8, .waiting_of_owner = 1}};
  std::optional<door::FileHandover> handover_{std::in_place, world_.node, *bulkhead_};
};

TEST_F(FdServiceTest, AnImportIsServed) {
  const UniqueFd file(memfd_create("import", MFD_ALLOW_SEALING | MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), kPage), 0);
  UniqueFd client;
  Serve(AdmittedWith(ImportTicket(), file.get(), client));
  EXPECT_FALSE(ReplyTo(client).has_error());
}

// A worker, which serves all owners, makes no call that the file's owner can block.
TEST_F(FdServiceTest, AFileIsSealedBeforeAWorkerGetsIt) {
  const UniqueFd file(memfd_create("import", MFD_ALLOW_SEALING | MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), kPage), 0);
  UniqueFd client;
  const std::string ticket = ImportTicket();
  {
    const core::BusyWorkers busy(*world_.workers, 2);
    Serve(AdmittedWith(ticket, file.get(), client));
    bulkhead_.reset();
    EXPECT_EQ(fcntl(file.get(), F_GET_SEALS), F_SEAL_SHRINK);
  }
  EXPECT_FALSE(ReplyTo(client).has_error());
}

TEST_F(FdServiceTest, ADescriptorWithoutAValidTicketIsNotReceived) {
  LingeringSocket lingering;
  UniqueFd client;
  AdmittedConnection admitted = AdmittedWith(std::string(16, 't'), lingering.get(), client);
  lingering.ForgetOurs();
  Serve(std::exchange(admitted, {}));
  ExpectOthersAreServed();
  lingering.Reset();
  bulkhead_.reset();
  EXPECT_EQ(ReplyTo(client).error().reason(), v1::ERROR_REASON_TICKET_UNKNOWN) << "also after the socket is closed";
}

TEST_F(FdServiceTest, ADescriptorThatBlocksDelaysOnlyItsOwner) {
  LingeringSocket lingering;
  UniqueFd client;
  AdmittedConnection admitted = AdmittedWith(ImportTicket(), lingering.get(), client);
  lingering.ForgetOurs();
  Serve(std::exchange(admitted, {}));
  ExpectOthersAreServed();
  lingering.Reset();
  EXPECT_EQ(ReplyTo(client).error().reason(), v1::ERROR_REASON_MEMORY_NOT_MEMORY);
}

TEST_F(FdServiceTest, AnOwnerThatIsBlockedIsTold) {
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  bulkhead_->Run(kOwner, [ended] { ended.wait(); });
  bulkhead_->Run(kOwner, [] {});
  bulkhead_->Run(kOwner, [] {});
  UniqueFd client;
  Serve(AdmittedWith(ImportTicket(), STDIN_FILENO, client));
  EXPECT_EQ(ReplyTo(client).error().reason(), v1::ERROR_REASON_FD_BLOCKED);
  end.set_value();
}

// SIGTERM meets a client that blocks.
TEST_F(FdServiceTest, WhatIsReceivedAfterTheEndIsDiscarded) {
  LingeringSocket lingering;
  UniqueFd client;
  AdmittedConnection admitted = AdmittedWith(ImportTicket(), lingering.get(), client);
  lingering.ForgetOurs();
  Serve(std::exchange(admitted, {}));
  handover_.reset();
  lingering.Reset();
  std::array<char, 16> bytes;
  EXPECT_EQ(recv(client.get(), bytes.data(), bytes.size(), 0), 0);
}

}  // namespace
}  // namespace rnicd::transport
