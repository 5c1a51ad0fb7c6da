// The fd socket: packets of any bytes with any descriptors, and tickets that are valid, wrong, used, expired or another
// client's, on a real core. For every input, all descriptors are closed, and a failed import leaves no object.
//
// Input: a sequence of steps; each is a byte that selects the action, followed by the action's arguments.

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "daemon/core/session/fd_exchange.h"
#include "daemon/transport/fd_packet.h"
#include "rnicd/v1/fd_channel.pb.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/descriptors.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/node.h"

namespace rnicd::fuzz {
namespace {

constexpr size_t kStepsMax = 64;
constexpr uint64_t kFileBytesMax = 64 * kNdkPageBytes;
constexpr size_t kDescriptorsMax = 3;
constexpr uint64_t kStranger = 99;

// The fuzzer's record of an issued ticket.
struct Ticket {
  core::FdTicket bytes{};
  std::shared_ptr<core::Session> session;
  MemoryObjectId memory;
  bool to_daemon = false;
  bool used = false;
};

struct Packet {
  std::string bytes;
  std::vector<UniqueFd> files;
  // Ticket in the packet; null if it holds no issued ticket.
  Ticket* ticket = nullptr;
  bool from_a_stranger = false;
  bool hangs_up = false;
};

struct SocketPair {
  SocketPair() {
    std::array<int, 2> ends{};
    Check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0, "a socket pair can be created");
    client.Reset(ends[0]);
    daemon.Reset(ends[1]);
  }
  UniqueFd client;
  UniqueFd daemon;
};

void Send(int socket, const Packet& packet) {
  iovec part = {.iov_base = const_cast<char*>(packet.bytes.data()), .iov_len = packet.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control{};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!packet.files.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(packet.files.size() * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(packet.files.size() * sizeof(int));
    for (size_t index = 0; index < packet.files.size(); ++index) {
      const int fd = packet.files[index].get();
      std::memcpy(CMSG_DATA(header) + index * sizeof(int), &fd, sizeof(fd));
    }
  }
  (void)sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Reads the reply, and checks that it matches the outcome.
void CheckReply(int socket, const absl::StatusOr<UniqueFd>& outcome) {
  std::array<char, 4096> bytes{};
  iovec part = {.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control{};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  Check(size > 0, "every packet gets a reply, not the end of the stream");
  UniqueFd received;
  if (const cmsghdr* const header = CMSG_FIRSTHDR(&message); header != nullptr) {
    Check(header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int)), "one descriptor at most");
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    received.Reset(fd);
  }
  Check(received.valid() == (outcome.ok() && outcome->valid()), "the descriptor comes with a fetch, and only then");
  v1::FdReply reply;
  Check(reply.ParseFromArray(bytes.data(), static_cast<int>(size)), "the reply is valid");
  Check(reply.has_error() == !outcome.ok(), "the reply reports the outcome");
  if (reply.has_error()) {
    Check(reply.error().reason() != v1::ERROR_REASON_UNSPECIFIED, "a refusal has a reason");
  }
}

// One run over an input.
class Exchange {
 public:
  explicit Exchange(Input& input) : input_(input) {
    OpenSession();
    Allocate();
    Import(kNdkPageBytes);
  }

  void Run() {
    for (size_t step = 0; step < kStepsMax && !input_.empty(); ++step) {
      Step();
      node_.Settle();
    }
    uses_.clear();
    tickets_.clear();
    session_.reset();
    node_.EndAll();
  }

 private:
  static NodeOptions Options() {
    NodeOptions options;
    options.tenant[core::Resource::kMemoryBytes] = 4 * kFileBytesMax;
    return options;
  }

  void Step() {
    switch (input_.Below(10)) {
      default:
        return TryPacket(NextPacket());
      case 4:
        return Allocate();
      case 5:
        return Import(input_.Number());
      case 6:
        return Seal();
      case 7:
        return Release();
      case 8:
        node_.clock.Advance(std::chrono::milliseconds(input_.Short()));
        return;
      case 9:
        node_.registry.End(session_, core::EndCause::kClosed, nullptr);
        return OpenSession();
    }
  }

  void OpenSession() { session_ = node_.Open(++processes_); }

  void Allocate() {
    const uint64_t bytes = (1 + input_.Below(4)) * kNdkPageBytes;
    (void)session_->Begin()->memory().Allocate(
        {.size = bytes}, [this](const absl::StatusOr<core::MemoryTicket>& ticket) {
          if (ticket.ok()) {
            tickets_.push_back({.bytes = ticket->ticket, .session = session_, .memory = ticket->memory});
          }
        });
    node_.Settle();
  }

  void Import(uint64_t bytes) {
    const absl::StatusOr<core::MemoryTicket> ticket = session_->Begin()->memory().Import(bytes);
    if (ticket.ok()) {
      tickets_.push_back({.bytes = ticket->ticket, .session = session_, .memory = ticket->memory, .to_daemon = true});
    }
  }

  // Null if there is no ticket.
  Ticket* AnyTicket() { return tickets_.empty() ? nullptr : &tickets_[input_.Byte() % tickets_.size()]; }

  // Its session may have ended.
  static absl::StatusOr<std::shared_ptr<core::MemoryObject>> MemoryOf(const Ticket& ticket) {
    RNICD_ASSIGN_OR_RETURN(const core::SessionGuard session, ticket.session->Begin());
    return session.memory().Find(ticket.memory);
  }

  void Seal() {
    if (const Ticket* const ticket = AnyTicket(); ticket != nullptr) {
      const auto memory = MemoryOf(*ticket);
      if (memory.ok() && (*memory)->Seal().ok() && input_.Bit()) {
        uses_.push_back(*(*memory)->BeginUse());
      }
    }
  }

  void Release() {
    uses_.clear();
    if (const Ticket* const ticket = AnyTicket(); ticket != nullptr) {
      if (const auto session = ticket->session->Begin(); session.ok()) {
        (void)session->memory().Release(ticket->memory, [](const absl::Status&) {});
      }
    }
  }

  Packet NextPacket() {
    Packet packet;
    const uint8_t kind = input_.Byte();
    packet.from_a_stranger = (kind & 0x10) != 0;
    packet.hangs_up = (kind & 0x08) != 0;
    for (size_t index = 0; index < (kind & 0x03); ++index) {
      const uint8_t of_what = input_.Byte();
      UniqueFd file = OpenDescriptor(of_what, input_.Number() % kFileBytesMax);
      if (file.valid()) {
        packet.files.push_back(std::move(file));
      }
    }
    if ((kind & 0x04) != 0) {
      packet.bytes = input_.Text(input_.Short() % (transport::kMaxFdPacketBytes + 16));
      return packet;
    }
    packet.ticket = AnyTicket();
    v1::FdRequest request;
    if (packet.ticket != nullptr) {
      request.set_fd_ticket(packet.ticket->bytes.data(), packet.ticket->bytes.size());
    }
    request.set_fd_count((kind & 0x20) != 0 ? input_.Byte() : static_cast<uint32_t>(packet.files.size()));
    packet.bytes = request.SerializeAsString();
    if ((kind & 0x40) != 0) {
      packet.bytes += input_.Text(input_.Byte());
    }
    return packet;
  }

  core::Caller CallerOf(const Packet& packet) const {
    const core::Session& owner = packet.ticket != nullptr ? *packet.ticket->session : *session_;
    return FuzzNode::CallerNumbered(packet.from_a_stranger ? kStranger : owner.owner().process.low);
  }

  // Null if the ticket was not issued. A packet of arbitrary bytes may contain an issued ticket: tickets are the same
  // in every run.
  Ticket* FindTicket(const core::FdTicket& bytes) {
    const auto found =
        std::find_if(tickets_.begin(), tickets_.end(), [&](const Ticket& ticket) { return ticket.bytes == bytes; });
    return found == tickets_.end() ? nullptr : &*found;
  }

  void TryPacket(Packet packet) {
    SocketPair sockets;
    Send(sockets.client.get(), packet);
    packet.files.clear();
    if (packet.hangs_up) {
      sockets.client.Reset(-1);
    }
    const absl::StatusOr<transport::FdPacket> received = transport::ReceiveFdPacket(sockets.daemon.get());
    if (absl::IsUnavailable(received.status())) {
      return;
    }
    const absl::StatusOr<UniqueFd> outcome = Redeem(packet, sockets.daemon.get(), received);
    transport::SendFdReply(sockets.daemon.get(), outcome);
    if (!packet.hangs_up) {
      CheckReply(sockets.client.get(), outcome);
    }
  }

  // As the daemon does it.
  absl::StatusOr<UniqueFd> Serve(int socket, const core::Caller& caller, const transport::FdPacket& packet) {
    if (!packet.brings_file) {
      return core::ExchangeFd(node_.node, caller, packet.ticket, UniqueFd());
    }
    RNICD_RETURN_IF_ERROR(core::CheckFdTicket(node_.node, caller, packet.ticket, /*brings_file=*/true));
    return core::ExchangeFd(node_.node, caller, packet.ticket, transport::TakeFile(socket, node_.node.os));
  }

  absl::StatusOr<UniqueFd> Redeem(const Packet& packet, int socket,
                                  const absl::StatusOr<transport::FdPacket>& received) {
    if (!received.ok()) {
      return received.status();
    }
    const core::Caller caller = CallerOf(packet);
    absl::StatusOr<UniqueFd> outcome = Serve(socket, caller, *received);
    Check(!FailedWith(outcome.status(), ErrorReason::INTERNAL_FAULT), "no packet causes an internal error");
    if (FailedWith(outcome.status(), ErrorReason::TICKET_UNKNOWN)) {
      return outcome;
    }
    Ticket* const ticket = FindTicket(received->ticket);
    Check(ticket != nullptr, "a ticket that was not issued is refused");
    Check(ticket->session->owner().process == caller.process, "a ticket is refused for another process");
    Check(!ticket->used, "a ticket works once");
    if (FailedWith(outcome.status(), ErrorReason::FD_COUNT_WRONG)) {
      return outcome;
    }
    ticket->used = true;
    if (!outcome.ok() && ticket->to_daemon) {
      Check(!MemoryOf(*ticket).ok(), "a refused import leaves no memory object");
    }
    return outcome;
  }

  Input& input_;
  FuzzNode node_{Options()};
  uint64_t processes_ = 0;
  std::shared_ptr<core::Session> session_;
  std::vector<Ticket> tickets_;
  std::vector<core::MemoryObject::Use> uses_;
};

}  // namespace
}  // namespace rnicd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const uint64_t before = rnicd::fuzz::OpenDescriptors();
  {
    rnicd::fuzz::Input input(data, size);
    rnicd::fuzz::Exchange(input).Run();
  }
  rnicd::fuzz::Check(rnicd::fuzz::OpenDescriptors() == before, "every descriptor is closed");
  return 0;
}
