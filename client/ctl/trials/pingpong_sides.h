#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "client/ctl/line/units.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {

struct PingpongOptions {
  std::string socket_dir;
  // As ClientOptions::grant and ClientOptions::adapter_name.
  std::string grant;
  std::string adapter;
  // Whether this side listens at `where`, and offers memory; otherwise it connects to the side that does.
  bool listens = false;
  HostPort where;
  // Memory of this side: whole pages of 4 KiB, as many as the peer has.
  uint64_t bytes = 0;
  // How often the connecting side writes and reads all of it; at least 1.
  uint64_t rounds = 1;
  // How long to wait for the peer to come, and for each of its messages.
  std::chrono::milliseconds wait{0};
};

// One side of a transfer between two processes that may be anywhere a card reaches. The listener registers memory and
// sends token, base address and queue pair over TCP; the other side writes a pattern into that memory by RDMA and reads
// it back, again in each round. The listener then finds the last pattern in its memory and puts one of its own there,
// which the other side reads. TCP carries no byte of them.
//
// `on_step` is called after each successful step; the report has all of them. Releases everything.
// Errors: the daemon's refusals; of the connection and of what the peer says, as peer_link_linux.h and
// pingpong_message.h say; kDataLoss with a sentence that describes a byte that differs. kUnimplemented on Windows.
absl::Status RunPingpong(const PingpongOptions& options, const std::function<void(const DemoStep&)>& on_step,
                         PingpongReport& report);

}  // namespace rnicd::ctl
