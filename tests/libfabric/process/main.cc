// Usage: libfabric_process memory|threads <seed> <count>
//        libfabric_process heap 0 0
//        libfabric_process peer <stage> <port>
// RNICD_SOCKET_DIR names the daemon's folder. Exits with 0 when all was right; says what was not and aborts otherwise.
// Without arguments it exits with 0 at once: its children execute that.
//
// A program of its own, since children of one that has used gRPC cannot be trusted to end by exit(), and since the
// thread sanitizer does not know gRPC.

#include <rdma/fi_endpoint.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "client/libfabric/provider.h"
#include "tests/libfabric/process/process.h"

extern "C" fi_provider* fi_prov_ini();

// Children of the address sanitizer's build, which look for leaks when they exit, see those of the parent's threads.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __lsan_is_turned_off() { return rnicd::fi::is_a_child ? 1 : 0; }

namespace rnicd::fi {

bool is_a_child = false;

void Expect(bool right, const char* what, size_t detail) {
  if (!right) {
    std::fprintf(stderr, "libfabric_process: %s (%zu)\n", what, detail);
    std::abort();
  }
}

Opened::Opened() {
  fi_provider* const provider = fi_prov_ini();
  fi_info* const hints = fi_allocinfo();
  hints->caps = FI_MSG | FI_RMA;
  hints->ep_attr->type = FI_EP_MSG;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  hints->mode = FI_RX_CQ_DATA | FI_CONTEXT;
  hints->tx_attr->size = 64;
  hints->rx_attr->size = 64;
  Expect(provider->getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info) == 0, "no provider");
  fi_freeinfo(hints);
  Expect(provider->fabric(info->fabric_attr, &fabric, nullptr) == 0, "no fabric");
  Expect(fi_domain(fabric, info, &domain, nullptr) == 0, "no domain");
}

Opened::~Opened() {
  Expect(fi_close(&domain->fid) == 0, "the domain is in use");
  fi_close(&fabric->fid);
  fi_freeinfo(info);
}

}  // namespace rnicd::fi

int main(int count, char** words) {
  if (count != 4) {
    return 0;
  }
  const std::string_view what = words[1];
  const uint64_t first = std::strtoull(words[2], nullptr, 10);
  const int second = std::atoi(words[3]);
  if (what == "memory") {
    rnicd::fi::StressMemory(first, second);
  } else if (what == "threads") {
    rnicd::fi::StressThreads(second);
  } else if (what == "heap") {
    rnicd::fi::UseBlocksOfTheHeap();
  } else {
    rnicd::fi::BePeer(static_cast<rnicd::fi::PeerStage>(first), static_cast<uint16_t>(second));
  }
  return 0;
}
