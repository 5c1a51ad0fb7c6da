#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>

#include "client/libfabric/info/hints.h"
#include "client/libfabric/limits.h"

namespace rnicd::fi {

// What applications of interfaces before 1.5 say about registration: FI_MR_BASIC, FI_MR_SCALABLE and FI_LOCAL_MR. The
// compiler warns of these names with the headers of libfabric 2, which has the values nevertheless.
inline constexpr int kMrBasic = 1 << 0;
inline constexpr int kMrScalable = 1 << 1;
inline constexpr uint64_t kLocalMr = uint64_t{1} << 55;

// What the provider offers. The rules of hint_rules.h compare hints with it.
// Source: fi_getinfo(3), fi_endpoint(3), fi_domain(3).

inline constexpr uint64_t kTransmitCaps = FI_MSG | FI_SEND | FI_RMA | FI_READ | FI_WRITE;
inline constexpr uint64_t kReceiveCaps = FI_MSG | FI_RECV | FI_RMA | FI_REMOTE_READ | FI_REMOTE_WRITE;
// Peers on the same node and on others.
inline constexpr uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;
inline constexpr uint64_t kCaps = kTransmitCaps | kReceiveCaps | kDomainCaps;

// Default flags that an application may ask for.
inline constexpr uint64_t kTransmitFlags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE;
inline constexpr uint64_t kReceiveFlags = FI_COMPLETION;

// A reliable connection executes requests in the order of posting, but a read may still be going on when a later write
// or send begins: neither FI_ORDER_WAR nor FI_ORDER_SAR.
inline constexpr uint64_t kMessageOrder = FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAW | FI_ORDER_WAS |
                                          FI_ORDER_SAW | FI_ORDER_SAS | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW |
                                          FI_ORDER_RMA_WAW;
// Requests of one queue complete in the order of posting: FI_ORDER_STRICT, of which libfabric 2 warns, too.
inline constexpr uint64_t kCompletionOrder = 0x1ff;

inline constexpr int kMrMode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
inline constexpr size_t kMrKeyBytes = sizeof(uint64_t);
// With FI_RX_CQ_DATA in the mode; without it, 0: a write that carries data consumes a receive.
inline constexpr size_t kCqDataBytes = sizeof(uint64_t);

// The messages carry a header of this provider's (message_header.h). The uppermost bit says so.
inline constexpr uint32_t kProtocol = uint32_t{1} << 31 | 0x726e;
inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr uint32_t kProviderVersion = FI_VERSION(1, 0);
// The fabric, and the domain of the node's first adapter.
inline constexpr char kName[] = "rnicd";

// Objects that a domain has room for: hints at the daemon's default quotas, not limits.
inline constexpr size_t kEndpointCount = 1024;
inline constexpr size_t kCqCount = 1024;
inline constexpr size_t kMrCount = 65536;

// Whether peers may read or write memory registered with these capabilities.
bool IsRmaTarget(uint64_t caps);
// Bits of `mode` that memory registration needs under these capabilities.
int NeededMrMode(uint64_t caps, int mode);
// The application knows only the registration modes of interfaces before 1.5.
bool HasOldMrMode(const Hints& hints);
// The application posts a receive for each write that carries data.
bool AcceptsCqData(const Hints& hints);

// Fills in all but addresses, for hints that satisfy the rules. `domain` is the domain's name.
// Errors: -FI_ENOMEM.
int SetAttributes(const Hints& hints, const char* domain, fi_info& info);

}  // namespace rnicd::fi
