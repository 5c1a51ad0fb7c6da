#include "client/libfabric/info/address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <memory>

#include "base/files/unique_fd.h"
#include "client/libfabric/provider.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

// An address of an fi_info.
struct AddressField {
  void*& address;
  size_t& bytes;
};

AddressField SourceField(fi_info& info) { return {.address = info.src_addr, .bytes = info.src_addrlen}; }
AddressField DestinationField(fi_info& info) { return {.address = info.dest_addr, .bytes = info.dest_addrlen}; }

int SetField(AddressField field, const sockaddr_storage& address) {
  return SetInfoAddress(address, &field.address, &field.bytes) ? 0 : -FI_ENOMEM;
}

// The address is one of the Internet.
int CopyAddress(AddressField field, const void* address, size_t bytes) {
  sockaddr_storage copy{};
  LoadAddress(address, bytes, &copy);
  return SetField(field, copy);
}

int FamilyOf(uint64_t format) {
  switch (format) {
    case FI_SOCKADDR_IN:
      return AF_INET;
    case FI_SOCKADDR_IN6:
      return AF_INET6;
    default:
      return AF_UNSPEC;
  }
}

// The family that is asked for; that of an address of the hints if no other is; else AF_UNSPEC.
int FamilyAsked(const AddressRequest& request) {
  const fi_info& hints = request.hints;
  if (const int family = FamilyOf(hints.addr_format); family != AF_UNSPEC) {
    return family;
  }
  if ((request.flags & FI_SOURCE) == 0 && hints.src_addr != nullptr) {
    return FamilyOf(FormatOf(hints.src_addr, hints.src_addrlen));
  }
  return FamilyOf(FormatOf(hints.dest_addr, hints.dest_addrlen));
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
int ResolveInto(const AddressRequest& request, AddressField field) {
  const int family = FamilyAsked(request);
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
  return CopyAddress(field, resolved->ai_addr, resolved->ai_addrlen);
}

int SetLoopbackAddress(int family, AddressField field) {
  sockaddr_storage address{};
  if (family == AF_INET6) {
    address.ss_family = AF_INET6;
    reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
  } else {
    address.ss_family = AF_INET;
    reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  return SetField(field, address);
}

// The address from which the system's routes lead to the destination. Without a route the loopback address: sockets in
// a shared folder need none.
int SetSourceTowards(const fi_info& info, AddressField source) {
  sockaddr_storage address{};
  LoadAddress(info.dest_addr, info.dest_addrlen, &address);
  const int family = address.ss_family;
  // Connecting a datagram socket sends nothing, but wants a port.
  SetPort(&address, 1);
  auto& generic = reinterpret_cast<sockaddr&>(address);
  auto bytes = static_cast<socklen_t>(AddressBytes(address));
  const UniqueFd socket_fd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket_fd.valid() || connect(socket_fd.get(), &generic, bytes) != 0 ||
      getsockname(socket_fd.get(), &generic, &bytes) != 0) {
    return SetLoopbackAddress(family, source);
  }
  SetPort(&address, 0);
  return SetField(source, address);
}

int SetAskedAddresses(const AddressRequest& request, fi_info& info) {
  const bool is_source = (request.flags & FI_SOURCE) != 0;
  const bool is_named = request.node != nullptr || request.service != nullptr;
  const fi_info& hints = request.hints;
  if (is_named) {
    if (const int error = ResolveInto(request, is_source ? SourceField(info) : DestinationField(info)); error != 0) {
      return error;
    }
  }
  if (!is_source && hints.src_addr != nullptr) {
    if (const int error = CopyAddress(SourceField(info), hints.src_addr, hints.src_addrlen); error != 0) {
      return error;
    }
  }
  const bool keeps_destination = (is_source || !is_named) && hints.dest_addr != nullptr;
  return keeps_destination ? CopyAddress(DestinationField(info), hints.dest_addr, hints.dest_addrlen) : 0;
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

int SetAddresses(const AddressRequest& request, fi_info& info) {
  if ((request.flags & FI_SOURCE) != 0 && request.node == nullptr && request.service == nullptr) {
    RNICD_FI_INFO(FI_LOG_CORE, "FI_SOURCE needs a node or a service\n");
    return -FI_EINVAL;
  }
  int error = SetAskedAddresses(request, info);
  if (error == 0 && info.src_addr == nullptr) {
    error = info.dest_addr != nullptr ? SetSourceTowards(info, SourceField(info))
                                      : SetLoopbackAddress(FamilyAsked(request), SourceField(info));
  }
  if (error == 0) {
    info.addr_format = static_cast<uint32_t>(FormatOf(info.src_addr, info.src_addrlen));
  }
  return error;
}

}  // namespace rnicd::fi
