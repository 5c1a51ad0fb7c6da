#pragma once

#include <rdma/fabric.h>

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

// Sets the addresses of `info` and their format. There is always a source: without anything asked port 0 of the
// loopback address, with a destination one that can reach it. Errors: -FI_EINVAL FI_SOURCE without node and service;
// -FI_ENODATA not resolved; -FI_ENOMEM. Source: fi_getinfo(3).
int SetAddresses(const AddressRequest& request, fi_info& info);

}  // namespace rnicd::fi
