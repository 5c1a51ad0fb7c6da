#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "tests/vm/bench/direct.h"

namespace rnicd::vm_bench {

// A queue pair of a process without rnicd, connected to itself, and registered memory. Every failure exits the program.
class DirectPair {
 public:
  enum class Wait : uint8_t {
    // Polls the completion queue.
    kBusily,
    // Arms it, and sleeps until its event.
    kForEvent,
  };
  explicit DirectPair(DirectCard& card);
  ~DirectPair();
  DirectPair(const DirectPair&) = delete;
  DirectPair& operator=(const DirectPair&) = delete;

  // Writes the first bytes of the memory to its second page, and returns when that is complete.
  void Write(uint32_t bytes, Wait wait);

 private:
  void Connect(ibv_context* context);
  void SleepUntilEvent();

  OwnMemory memory_;
  ibv_mr* region_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_qp* pair_ = nullptr;
};

}  // namespace rnicd::vm_bench
