#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>

#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "provider/verbs/card/kernel_cards.h"
#include "provider/verbs/connection/rdma_cm.h"

namespace rnicd::provider {
namespace {

// The kernel asks three times in this time for a MAC address.
constexpr int kResolveMilliseconds = 3000;
constexpr size_t kIpv4Offset = 12;

int ErrnoOf(int result) { return result == 0 ? 0 : (errno != 0 ? errno : EIO); }

sockaddr_storage ToSocketAddress(const NetworkAddress& address) {
  sockaddr_storage storage = {};
  const std::array<uint8_t, 16>& bytes = address.ip.bytes();
  if (address.ip.is_ipv4()) {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    std::memcpy(&in.sin_addr, bytes.data() + kIpv4Offset, sizeof(in.sin_addr));
    std::memcpy(&storage, &in, sizeof(in));
  } else {
    sockaddr_in6 in6 = {};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(address.port);
    std::memcpy(&in6.sin6_addr, bytes.data(), sizeof(in6.sin6_addr));
    std::memcpy(&storage, &in6, sizeof(in6));
  }
  return storage;
}

NetworkAddress FromSocketAddress(const sockaddr& address) {
  std::array<uint8_t, 16> bytes = {};
  if (address.sa_family == AF_INET) {
    sockaddr_in in = {};
    std::memcpy(&in, &address, sizeof(in));
    bytes[kIpv4Offset - 1] = bytes[kIpv4Offset - 2] = 0xff;
    std::memcpy(bytes.data() + kIpv4Offset, &in.sin_addr, sizeof(in.sin_addr));
    return {.ip = IpAddress(bytes), .port = ntohs(in.sin_port)};
  }
  sockaddr_in6 in6 = {};
  std::memcpy(&in6, &address, sizeof(in6));
  std::memcpy(bytes.data(), &in6.sin6_addr, sizeof(in6.sin6_addr));
  return {.ip = IpAddress(bytes), .port = ntohs(in6.sin6_port)};
}

// The first route of a process makes the library look for ibacm, possibly over an Internet socket, which a daemon that
// serves may not make. So it looks at the start, and finds none, because the daemon may not connect to it either.
void LookForAcmOnce() {
  rdma_addrinfo hints = {};
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* found = nullptr;
  if (rdma_getaddrinfo(nullptr, nullptr, &hints, &found) == 0) {
    rdma_freeaddrinfo(found);
  }
}

// An opening of a card by the library, which keeps it as long as the card is there.
struct LibraryOpening {
  std::string file;
  int async_fd = -1;
  dev_t device = 0;
  ino_t inode = 0;
};

// Closes a card under the library, which may go on to use the numbers of both descriptors: every command fails then.
// Does nothing where the library has closed it.
void TakeDescriptors(int cmd_fd, const LibraryOpening& opening, const UniqueFd& nothing) {
  struct stat facts = {};
  if (fstat(cmd_fd, &facts) != 0 || facts.st_rdev != opening.device || facts.st_ino != opening.inode) {
    return;
  }
  for (const int descriptor : {cmd_fd, opening.async_fd}) {
    dup3(nothing.get(), descriptor, O_CLOEXEC);
  }
}

class RdmaCmImplementation final : public RdmaCm {
 public:
  rdma_event_channel* CreateChannel() override {
    errno = 0;
    rdma_event_channel* const channel = rdma_create_event_channel();
    if (channel == nullptr) {
      errno = errno != 0 ? errno : ENODEV;
      return nullptr;
    }
    const int flags = fcntl(channel->fd, F_GETFL);
    if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
      const int error = errno;
      rdma_destroy_event_channel(channel);
      errno = error;
      return nullptr;
    }
    LookForAcmOnce();
    return channel;
  }
  void DestroyChannel(rdma_event_channel* channel) override { rdma_destroy_event_channel(channel); }

  int NextEvent(rdma_event_channel* channel, absl::FunctionRef<void(const rdma_cm_event&)> take) override {
    rdma_cm_event* event = nullptr;
    if (const int error = ErrnoOf(rdma_get_cm_event(channel, &event)); error != 0) {
      return error;
    }
    take(*event);
    return ErrnoOf(rdma_ack_cm_event(event));
  }

  rdma_cm_id* CreateId(rdma_event_channel* channel, void* context) override {
    rdma_cm_id* id = nullptr;
    return rdma_create_id(channel, &id, context, RDMA_PS_TCP) == 0 ? id : nullptr;
  }
  int DestroyId(rdma_cm_id* id) override { return ErrnoOf(rdma_destroy_id(id)); }
  int ShareAddress(rdma_cm_id* id) override {
    int on = 1;
    return ErrnoOf(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
  }
  int Bind(rdma_cm_id* id, const NetworkAddress& address) override {
    sockaddr_storage storage = ToSocketAddress(address);
    // In it the library opens cards, and closes those that are gone.
    MutexLock lock(mutex_);
    const int error = ErrnoOf(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&storage)));
    if (id->verbs != nullptr) {
      Remember(*id->verbs);
    }
    return error;
  }
  // 0 is the longest that there is.
  int Listen(rdma_cm_id* id) override { return ErrnoOf(rdma_listen(id, 0)); }
  int ResolveAddress(rdma_cm_id* id, const NetworkAddress& peer) override {
    sockaddr_storage storage = ToSocketAddress(peer);
    return ErrnoOf(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&storage), kResolveMilliseconds));
  }
  int ResolveRoute(rdma_cm_id* id) override { return ErrnoOf(rdma_resolve_route(id, kResolveMilliseconds)); }
  int Connect(rdma_cm_id* id, rdma_conn_param& parameters) override { return ErrnoOf(rdma_connect(id, &parameters)); }
  int Accept(rdma_cm_id* id, rdma_conn_param& parameters) override { return ErrnoOf(rdma_accept(id, &parameters)); }
  int Reject(rdma_cm_id* id, std::string_view private_data) override {
    return ErrnoOf(rdma_reject(id, private_data.data(), static_cast<uint8_t>(private_data.size())));
  }
  int Establish(rdma_cm_id* id) override { return ErrnoOf(rdma_establish(id)); }
  int Disconnect(rdma_cm_id* id) override { return ErrnoOf(rdma_disconnect(id)); }
  int InitQpAttributes(rdma_cm_id* id, ibv_qp_attr& attributes) override {
    int mask = 0;
    return ErrnoOf(rdma_init_qp_attr(id, &attributes, &mask));
  }

  CmCard CardOf(rdma_cm_id* id) override {
    return id->verbs == nullptr ? CmCard()
                                : CmCard{.card = KernelCards::IdOf(*id->verbs->device).name, .port = id->port_num};
  }
  NetworkAddress LocalAddress(rdma_cm_id* id) override { return FromSocketAddress(*rdma_get_local_addr(id)); }
  NetworkAddress PeerAddress(rdma_cm_id* id) override { return FromSocketAddress(*rdma_get_peer_addr(id)); }

  void LetGo(const CardId& card) override {
    if (KernelCards::HasFile(card)) {
      return;
    }
    MutexLock lock(mutex_);
    std::erase_if(opened_, [&](const auto& opening) {
      const bool is_of_card = opening.second.file == card.file;
      if (is_of_card) {
        TakeDescriptors(opening.first, opening.second, nothing_);
      }
      return is_of_card;
    });
  }

 private:
  void Remember(const ibv_context& context) RNICD_REQUIRES(mutex_) {
    struct stat facts = {};
    if (fstat(context.cmd_fd, &facts) == 0) {
      opened_[context.cmd_fd] = {.file = context.device->dev_name,
                                 .async_fd = context.async_fd,
                                 .device = facts.st_rdev,
                                 .inode = facts.st_ino};
    }
  }

  // Opened before any client can use up the descriptors.
  const UniqueFd nothing_{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  Mutex mutex_;
  // The key is the descriptor for commands.
  std::map<int, LibraryOpening> opened_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace

RdmaCm& RdmaCmLibrary() {
  static RdmaCmImplementation library;
  return library;
}

}  // namespace rnicd::provider
