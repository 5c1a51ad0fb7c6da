#pragma once

#include <ifaddrs.h>
#include <rdma/fabric.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

namespace rnicd::fi {

// FI_SOCKADDR_IN or FI_SOCKADDR_IN6; FI_FORMAT_UNSPEC for no address, and FI_SOCKADDR for one of another family, or one
// that is shorter than its family's.
uint64_t FormatOf(const void* address, size_t bytes);

// What fi_getinfo is asked about addresses.
struct AddressRequest {
  // Either or both may be NULL.
  const char* node;
  const char* service;
  // FI_SOURCE: node and service are the source's. FI_NUMERICHOST: node is not a name.
  uint64_t flags;
  // Its addresses and addr_format count. They satisfy the rules of hint_rules.h.
  const fi_info& hints;
};

// The first address of the interface with that name, or, without a name, of any but the loopback device; null for none.
// Interfaces must be up. AF_UNSPEC takes IPv6 after IPv4; a link-local address is none, since it has no meaning on
// another host.
const sockaddr* ChooseAddress(const ifaddrs* interfaces, int family, const char* name);

// Sets the addresses of `info` and their format. There is always a source, with port 0 unless one is asked for: with a
// destination an address that can reach it, without anything asked one of the interface FI_RNICD_INTERFACE, by default
// the first that others can reach, else the loopback address. Errors: -FI_EINVAL FI_SOURCE without node and service;
// -FI_ENODATA not resolved, or no such interface; -FI_ENOMEM. Source: fi_getinfo(3).
int SetAddresses(const AddressRequest& request, fi_info& info);

}  // namespace rnicd::fi
