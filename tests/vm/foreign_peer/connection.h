#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/vm/foreign_peer/address.h"

namespace foreign_peer {

struct ConnectionOptions {
  // Name of the card; empty: the first one.
  std::string device;
  uint8_t port = 1;
  // "auto", "ipv4", "ipv6", "link-local", or one address as text.
  std::string gid = "auto";
  // Size of each of the two buffers.
  size_t buffer_bytes = 64 * 1024;
  // ACK timeout: 4.096 us times 2 to this power.
  uint8_t ack_timeout = 16;
  // Timeout for the completion of a request.
  std::chrono::seconds timeout{60};
};

// Result of a request.
struct Outcome {
  // Empty on success; otherwise a name of enum ibv_wc_status without its prefix, or POST_FAILED, or NO_COMPLETION on
  // timeout.
  std::string error;
  // Received bytes; receives only.
  uint32_t bytes = 0;

  bool ok() const { return error.empty(); }
};

// One reliable connection with two registered buffers of equal size: `memory` is accessible to the peer, `scratch` is
// the local buffer of requests. A failing setup step exits the program with one line on stderr.
class Connection {
 public:
  explicit Connection(const ConnectionOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const Address& address() const { return address_; }
  std::vector<uint8_t>& memory() { return memory_; }
  std::vector<uint8_t>& scratch() { return scratch_; }
  uint64_t memory_address() const { return reinterpret_cast<uint64_t>(memory_.data()); }
  uint32_t memory_rkey() const { return memory_mr_->rkey; }

  // Returns an empty string, or the step that failed.
  std::string Connect(const Address& peer);
  // Each uses the first `length` bytes of scratch, and waits for the completion.
  Outcome Write(uint64_t remote_address, uint32_t rkey, uint32_t length);
  Outcome Read(uint64_t remote_address, uint32_t rkey, uint32_t length);
  Outcome Send(uint32_t length);
  // A message without bytes, with which the other side's card invalidates the key.
  Outcome SendInvalidate(uint32_t rkey);
  // Receives into scratch.
  Outcome Receive();
  // Writes, with several in flight, until `duration` is over or a write fails; the first 8 bytes of each count up from
  // 1.
  Outcome WriteFor(std::chrono::milliseconds duration, uint64_t remote_address, uint32_t rkey, uint32_t length,
                   uint64_t& writes);
  // State of the queue pair, named as in enum ibv_qp_state: "RTS".
  std::string State() const;

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  void OpenDevice();
  void ChooseGid();
  void MakeQueues();
  bool PostSend(ibv_wr_opcode opcode, uint64_t remote_address, uint32_t rkey, uint32_t length);
  Outcome RunSend(ibv_wr_opcode opcode, uint64_t remote_address, uint32_t rkey, uint32_t length);
  // Waits for the next completion of one of the queues.
  Outcome Wait(ibv_cq* cq, Deadline deadline);

  const ConnectionOptions options_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* send_cq_ = nullptr;
  ibv_cq* receive_cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  std::vector<uint8_t> memory_;
  std::vector<uint8_t> scratch_;
  ibv_mr* memory_mr_ = nullptr;
  ibv_mr* scratch_mr_ = nullptr;
  uint8_t gid_index_ = 0;
  bool ethernet_ = true;
  bool receive_posted_ = false;
  Address address_;
};

// The name of the state of a completion, without its prefix: "REM_ACCESS_ERR".
std::string CompletionName(ibv_wc_status status);

}  // namespace foreign_peer
