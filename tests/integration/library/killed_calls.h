#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/library/librnicd_c_fixture.h"

// The functions of the C interface that speak with the daemon, for tests that kill it.
namespace rnicd::test {

// A session with one handle of each kind, which outlives the daemon.
class Orphan {
 public:
  // `data_path` and `flags`: as in rnicd_session_options.
  Orphan(const std::string& socket_dir, const char* label, uint32_t data_path, uint32_t flags) : flags_(flags) {
    auto options = RNICD_INIT(rnicd_session_options);
    options.socket_dir = socket_dir.c_str();
    options.label = label;
    options.data_path = data_path;
    options.flags = flags;
    options.on_session_ended = SessionEnded;
    options.context = this;
    session = MakeInC<rnicd_session>(rnicd_open_session, &options).release();
    memory = MemoryInC(session, 4 * kPage).release();
    mr = MakeInC<rnicd_mr>(rnicd_register_mr, memory, uint64_t{0}, kPage, RNICD_MR_REMOTE_WRITE).release();
    fast_mr = MakeInC<rnicd_fast_mr>(rnicd_create_fast_mr, session, 4u, 0u).release();
    mapping = MakeInC<rnicd_mapping>(rnicd_create_mapping, memory, uint64_t{0}, kPage).release();
    mw = MakeInC<rnicd_mw>(rnicd_create_mw, session).release();
    cq = MakeInC<rnicd_cq>(rnicd_create_cq, session, 64u, 0u).release();
    auto limits = RNICD_INIT(rnicd_qp_options);
    limits.initiator_queue_depth = 2048;
    qp = MakeInC<rnicd_qp>(rnicd_create_qp, cq, cq, &limits).release();
    auto self = RNICD_INIT(rnicd_qp_info);
    EXPECT_EQ(rnicd_query_qp(qp, &self), 0);
    EXPECT_EQ(rnicd_connect_qp(qp, self.address, self.address_bytes), 0);
    EXPECT_EQ(rnicd_chain_write(chain.get(), nullptr, 0, 0, 0, RNICD_OP_SILENT_SUCCESS, 1), 0);
    // The ring is open.
    EXPECT_EQ(rnicd_post(qp, chain.get()), 0) << rnicd_last_error()->message;
  }
  Orphan(const Orphan&) = delete;
  Orphan& operator=(const Orphan&) = delete;

  // After the daemon's end: the program is told of it once, and each close returns.
  void ExpectEnd() {
    if (session != nullptr) {
      EXPECT_EQ(rnicd_progress(session, -1), (flags_ & RNICD_THREAD) != 0 ? -EINVAL : 0);
      EXPECT_TRUE(Eventually([this] { return ended_ == 1; }));
    }
    if (memory != nullptr) {
      *static_cast<char*>(QueryInC(memory).address) = 'x';  // The bytes are still there.
    }
    ExpectReset(qp);
    ExpectReset(cq);
    ExpectReset(mw);
    ExpectReset(mapping);
    ExpectReset(fast_mr);
    ExpectReset(mr);
    ExpectReset(memory);
    ExpectReset(session);
    EXPECT_LE(ended_, 1);
  }

  rnicd_session* session = nullptr;
  rnicd_memory* memory = nullptr;
  rnicd_mr* mr = nullptr;
  rnicd_fast_mr* fast_mr = nullptr;
  rnicd_mapping* mapping = nullptr;
  rnicd_mw* mw = nullptr;
  rnicd_cq* cq = nullptr;
  rnicd_qp* qp = nullptr;
  const InC<rnicd_chain> chain = ChainInC();

 private:
  static constexpr uint64_t kPage = 4096;

  static void SessionEnded(void* self, const rnicd_error* why) {
    EXPECT_EQ(why->code, ECONNRESET) << why->message;
    EXPECT_EQ(why->reason, 0u);
    ++static_cast<Orphan*>(self)->ended_;
  }
  template <typename Handle>
  static void ExpectReset(Handle*& handle) {
    if (handle != nullptr) {
      EXPECT_EQ(CloseInC::Close(std::exchange(handle, nullptr)), -ECONNRESET) << rnicd_last_error()->message;
    }
  }

  const uint32_t flags_;
  std::atomic<int> ended_ = 0;
};

// Whether the daemon receives something when the function is called.
enum class Sends { kAlways, kByCalls, kNever };

// A function, and what it returns after the daemon's end.
struct KilledCall {
  const char* function;
  std::function<int(Orphan&)> call;
  Sends sends = Sends::kAlways;
  int by_calls = -ECONNRESET;
  int by_rings = -ECONNRESET;
  // Made while the daemon lives.
  std::function<void(Orphan&)> before = [](Orphan&) {};
};

// One row for each of them. `socket_dir` is the daemon's.
std::vector<KilledCall> KilledCalls(const std::string& socket_dir);

}  // namespace rnicd::test
