#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <array>
#include <cerrno>
#include <cstring>

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

// True for the entry of a device's MAC address.
bool HasMac(const ifaddrs& entry, const ibv_gid& mac) {
  constexpr size_t kMacBytes = 6;
  if (entry.ifa_addr == nullptr || entry.ifa_addr->sa_family != AF_PACKET) {
    return false;
  }
  sockaddr_ll link = {};
  std::memcpy(&link, entry.ifa_addr, sizeof(link));
  return link.sll_halen == kMacBytes && std::memcmp(link.sll_addr, mac.raw, kMacBytes) == 0;
}

// True for an address that needs no zone.
bool IsGlobal(const sockaddr* address) {
  if (address == nullptr || address->sa_family != AF_INET6) {
    return address != nullptr && address->sa_family == AF_INET;
  }
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
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
    return ErrnoOf(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&storage)));
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
                                : CmCard{.card = ibv_get_device_name(id->verbs->device), .port = id->port_num};
  }
  NetworkAddress LocalAddress(rdma_cm_id* id) override { return FromSocketAddress(*rdma_get_local_addr(id)); }
  NetworkAddress PeerAddress(rdma_cm_id* id) override { return FromSocketAddress(*rdma_get_peer_addr(id)); }

  std::vector<IpAddress> AddressesOf(const ibv_gid& mac) override {
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) {
      return {};
    }
    std::vector<IpAddress> addresses;
    for (const ifaddrs* device = list; device != nullptr; device = device->ifa_next) {
      for (const ifaddrs* each = HasMac(*device, mac) ? list : nullptr; each != nullptr; each = each->ifa_next) {
        if (std::strcmp(each->ifa_name, device->ifa_name) == 0 && IsGlobal(each->ifa_addr)) {
          addresses.push_back(FromSocketAddress(*each->ifa_addr).ip);
        }
      }
    }
    freeifaddrs(list);
    return addresses;
  }
};

}  // namespace

RdmaCm& RdmaCmLibrary() {
  static RdmaCmImplementation library;
  return library;
}

}  // namespace rnicd::provider
