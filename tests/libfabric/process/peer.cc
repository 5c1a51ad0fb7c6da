// A peer that stops at a stage of connecting, and is killed there.

#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "client/libfabric/socket_address.h"
#include "tests/libfabric/process/process.h"

namespace rnicd::fi {
namespace {

void WaitToBeKilled() {
  std::puts("there");
  std::fflush(stdout);
  for (;;) {
    pause();
  }
}

}  // namespace

void BePeer(PeerStage stage, uint16_t port) {
  sockaddr_storage address = {};
  address.ss_family = AF_INET;
  SetPort(&address, port);
  reinterpret_cast<sockaddr_in*>(&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (stage == PeerStage::kSilent) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    Expect(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(sockaddr_in)) == 0, "connect");
    WaitToBeKilled();
  }
  const Opened opened;
  fi_eq_attr events = {};
  events.wait_obj = FI_WAIT_UNSPEC;
  fid_eq* queue = nullptr;
  Expect(fi_eq_open(opened.fabric, &events, &queue, nullptr) == 0, "no event queue");
  fi_cq_attr completions = {};
  fid_cq* completion_queue = nullptr;
  Expect(fi_cq_open(opened.domain, &completions, &completion_queue, nullptr) == 0, "no completion queue");
  fid_ep* endpoint = nullptr;
  Expect(fi_endpoint(opened.domain, opened.info, &endpoint, nullptr) == 0, "no endpoint");
  Expect(fi_ep_bind(endpoint, &queue->fid, 0) == 0, "binding the event queue");
  Expect(fi_ep_bind(endpoint, &completion_queue->fid, FI_TRANSMIT | FI_RECV) == 0, "binding the completion queue");
  Expect(fi_enable(endpoint) == 0 && fi_connect(endpoint, &address, nullptr, 0) == 0, "fi_connect");
  if (stage == PeerStage::kConnected) {
    uint32_t event = 0;
    std::array<std::byte, 512> entry;
    Expect(fi_eq_sread(queue, &event, entry.data(), entry.size(), -1, 0) > 0 && event == FI_CONNECTED, "not connected");
  }
  WaitToBeKilled();
}

}  // namespace rnicd::fi
