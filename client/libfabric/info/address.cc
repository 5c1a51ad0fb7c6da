#include "client/libfabric/info/address.h"

#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <memory>
#include <string_view>

#include "base/files/unique_fd.h"
#include "client/libfabric/connection/socket_folder.h"
#include "client/libfabric/provider.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

// The family that is asked for; that of an address of the hints if no other is; else AF_UNSPEC.
int FamilyAsked(const fi_info& hints, const sockaddr_storage& source, const sockaddr_storage& destination) {
  switch (hints.addr_format) {
    case FI_SOCKADDR_IN:
      return AF_INET;
    case FI_SOCKADDR_IN6:
      return AF_INET6;
    default:
      return source.ss_family != AF_UNSPEC ? source.ss_family : destination.ss_family;
  }
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Result of getaddrinfo.
int ResolveIn(int family, const AddressRequest& request, AddressList& resolved) {
  addrinfo asked{};
  asked.ai_family = family;
  asked.ai_socktype = SOCK_STREAM;
  asked.ai_flags = ((request.flags & FI_SOURCE) != 0 ? AI_PASSIVE : 0) |
                   ((request.flags & FI_NUMERICHOST) != 0 ? AI_NUMERICHOST : 0);
  addrinfo* result = nullptr;
  const int error = getaddrinfo(request.node, request.service, &asked, &result);
  resolved.reset(result);
  return error;
}

// Node and service. Where no family is asked for, IPv4 comes first.
int Resolve(const AddressRequest& request, int family, sockaddr_storage* address) {
  AddressList resolved(nullptr, freeaddrinfo);
  int error = ResolveIn(family == AF_UNSPEC ? AF_INET : family, request, resolved);
  if (error != 0 && family == AF_UNSPEC) {
    error = ResolveIn(AF_INET6, request, resolved);
  }
  if (error != 0) {
    RNICD_FI_INFO(FI_LOG_CORE, "node %s, service %s: %s\n", request.node == nullptr ? "(none)" : request.node,
                  request.service == nullptr ? "(none)" : request.service, gai_strerror(error));
    return error == EAI_MEMORY ? -FI_ENOMEM : -FI_ENODATA;
  }
  LoadAddress(resolved->ai_addr, resolved->ai_addrlen, address);
  return 0;
}

sockaddr_storage LoopbackOf(int family) {
  sockaddr_storage address{};
  if (family == AF_INET6) {
    address.ss_family = AF_INET6;
    reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
  } else {
    address.ss_family = AF_INET;
    reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  return address;
}

// The address from which the system's routes lead to the destination. Without a route the loopback address: sockets in
// a shared folder need none.
sockaddr_storage SourceTowards(sockaddr_storage address) {
  const int family = address.ss_family;
  // Connecting a datagram socket sends nothing, but wants a port.
  SetPort(&address, 1);
  auto& generic = reinterpret_cast<sockaddr&>(address);
  auto bytes = static_cast<socklen_t>(AddressBytes(address));
  const UniqueFd socket_fd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket_fd.valid() || connect(socket_fd.get(), &generic, bytes) != 0 ||
      getsockname(socket_fd.get(), &generic, &bytes) != 0) {
    return LoopbackOf(family);
  }
  SetPort(&address, 0);
  return address;
}

// The interface that the user chose; null: none.
const char* InterfaceName() {
  static const int defined =
      fi_param_define(&Provider(), "interface", FI_PARAM_STRING,
                      "Interface at which programs listen that name no address; none: the first one but loopback");
  char* name = nullptr;
  const bool is_set = defined == 0 && fi_param_get_str(&Provider(), "interface", &name) == 0;
  return is_set && name != nullptr && *name != '\0' ? name : nullptr;
}

bool Fits(const ifaddrs& interface, int family, const char* name) {
  const sockaddr* const address = interface.ifa_addr;
  if (address == nullptr || address->sa_family != family || (interface.ifa_flags & IFF_UP) == 0) {
    return false;
  }
  if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)) {
    return false;
  }
  return name == nullptr ? (interface.ifa_flags & IFF_LOOPBACK) == 0 : std::string_view(interface.ifa_name) == name;
}

// The address of a program that names none. In a shared folder addresses are only names.
int OwnAddress(int family, sockaddr_storage* source) {
  *source = LoopbackOf(family);
  if (!SocketFolder().empty()) {
    return 0;
  }
  ifaddrs* first = nullptr;
  // Where it fails, as in a sandbox without netlink, there are none.
  (void)!getifaddrs(&first);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> interfaces(first, freeifaddrs);
  const char* const name = InterfaceName();
  if (const sockaddr* const chosen = ChooseAddress(first, family, name); chosen != nullptr) {
    LoadAddress(chosen, sizeof(sockaddr_in6), source);
  } else if (name != nullptr) {
    RNICD_FI_WARN(FI_LOG_CORE, "FI_RNICD_INTERFACE: no interface %s that is up has an address to listen at\n", name);
    return -FI_ENODATA;
  }
  return 0;
}

}  // namespace

uint64_t FormatOf(const void* address, size_t bytes) {
  if (address == nullptr) {
    return FI_FORMAT_UNSPEC;
  }
  sockaddr_storage copy{};
  if (!LoadAddress(address, bytes, &copy)) {
    return FI_SOCKADDR;
  }
  return copy.ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
}

const sockaddr* ChooseAddress(const ifaddrs* interfaces, int family, const char* name) {
  if (family == AF_UNSPEC) {
    const sockaddr* const four = ChooseAddress(interfaces, AF_INET, name);
    return four != nullptr ? four : ChooseAddress(interfaces, AF_INET6, name);
  }
  for (const ifaddrs* interface = interfaces; interface != nullptr; interface = interface->ifa_next) {
    if (Fits(*interface, family, name)) {
      return interface->ifa_addr;
    }
  }
  return nullptr;
}

int SetAddresses(const AddressRequest& request, fi_info& info) {
  const bool is_source = (request.flags & FI_SOURCE) != 0;
  const bool is_named = request.node != nullptr || request.service != nullptr;
  if (is_source && !is_named) {
    RNICD_FI_INFO(FI_LOG_CORE, "FI_SOURCE needs a node or a service\n");
    return -FI_EINVAL;
  }
  // Without a family where there is none.
  sockaddr_storage source{};
  sockaddr_storage destination{};
  if (!is_source) {
    LoadAddress(request.hints.src_addr, request.hints.src_addrlen, &source);
  }
  LoadAddress(request.hints.dest_addr, request.hints.dest_addrlen, &destination);
  const int family = FamilyAsked(request.hints, source, destination);
  if (is_named) {
    if (const int error = Resolve(request, family, is_source ? &source : &destination); error != 0) {
      return error;
    }
  }
  const bool has_destination = AddressBytes(destination) != 0;
  if (AddressBytes(source) == 0) {
    if (has_destination) {
      source = SourceTowards(destination);
    } else if (const int error = OwnAddress(family, &source); error != 0) {
      return error;
    }
  }
  info.addr_format = source.ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
  const bool set = SetInfoAddress(source, &info.src_addr, &info.src_addrlen) &&
                   (!has_destination || SetInfoAddress(destination, &info.dest_addr, &info.dest_addrlen));
  return set ? 0 : -FI_ENOMEM;
}

}  // namespace rnicd::fi
