#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "client/c/rnicd.h"
#include "tests/support/process/wait.h"
#include "tests/support/shared_daemon.h"

// What the librnicd_c*_test.cc files share: the C interface against the real daemon, and nothing of the C++ one.
namespace rnicd::test {

// Closes a handle, which must succeed.
struct CloseInC {
  static int Close(rnicd_session* session) { return rnicd_close_session(session, nullptr); }
  static int Close(rnicd_memory* memory) { return rnicd_close_memory(memory); }
  static int Close(rnicd_mr* mr) { return rnicd_close_mr(mr); }
  static int Close(rnicd_fast_mr* mr) { return rnicd_close_fast_mr(mr); }
  static int Close(rnicd_mapping* mapping) { return rnicd_close_mapping(mapping); }
  static int Close(rnicd_mw* mw) { return rnicd_close_mw(mw); }
  static int Close(rnicd_cq* cq) { return rnicd_close_cq(cq); }
  static int Close(rnicd_qp* qp) { return rnicd_close_qp(qp); }
  static int Close(rnicd_chain* chain) { return rnicd_close_chain(chain); }

  template <typename Handle>
  void operator()(Handle* handle) const {
    EXPECT_EQ(Close(handle), 0) << rnicd_last_error()->message;
  }
};
template <typename Handle>
using InC = std::unique_ptr<Handle, CloseInC>;

// The handle that `make` writes to its last argument; the end of the program, after a test failure, when there is none.
template <typename Handle, typename Make, typename... Arguments>
InC<Handle> MakeInC(Make make, Arguments... arguments) {
  Handle* handle = nullptr;
  if (const int result = make(arguments..., &handle); result != 0 || handle == nullptr) {
    ADD_FAILURE() << result << ": " << rnicd_last_error()->message << " (" << rnicd_last_error()->field << ")";
    std::abort();
  }
  return InC<Handle>(handle);
}

inline InC<rnicd_session> SessionInC(const DaemonProcess& daemon,
                                     rnicd_session_options options = RNICD_INIT(rnicd_session_options)) {
  const std::string socket_dir = daemon.socket_dir();
  options.socket_dir = socket_dir.c_str();
  options.label = "c";
  return MakeInC<rnicd_session>(rnicd_open_session, &options);
}

inline InC<rnicd_memory> MemoryInC(rnicd_session* session, uint64_t bytes) {
  auto options = RNICD_INIT(rnicd_memory_options);
  options.bytes = bytes;
  return MakeInC<rnicd_memory>(rnicd_allocate_memory, session, &options);
}

inline InC<rnicd_chain> ChainInC() { return MakeInC<rnicd_chain>(rnicd_create_chain); }

inline rnicd_memory_info QueryInC(const rnicd_memory* memory) {
  auto info = RNICD_INIT(rnicd_memory_info);
  EXPECT_EQ(rnicd_query_memory(memory, &info), 0);
  return info;
}
inline rnicd_mr_info QueryInC(const rnicd_mr* mr) {
  auto info = RNICD_INIT(rnicd_mr_info);
  EXPECT_EQ(rnicd_query_mr(mr, &info), 0);
  return info;
}
inline rnicd_pages QueryInC(const rnicd_mapping* mapping) {
  auto pages = RNICD_INIT(rnicd_pages);
  EXPECT_EQ(rnicd_query_mapping(mapping, &pages), 0);
  return pages;
}

// What the session uses of one resource.
inline uint64_t UsedInC(rnicd_session* session, const std::string& name) {
  rnicd_resource resources[64] = {};
  const int count = rnicd_query_session(session, resources, 64);
  for (int index = 0; index < count; ++index) {
    if (resources[index].name == name) {
      return resources[index].used;
    }
  }
  ADD_FAILURE() << "no resource " << name;
  return 0;
}

// A session with memory, a region of all of it, and a queue pair that is connected to itself.
struct LoopInC {
  static constexpr uint64_t kBytes = uint64_t{16} * 4096;

  explicit LoopInC(const DaemonProcess& daemon, uint32_t depth = 64)
      : session(SessionInC(daemon)),
        memory(MemoryInC(session.get(), kBytes)),
        mr(MakeInC<rnicd_mr>(rnicd_register_mr, memory.get(), uint64_t{0}, kBytes,
                             RNICD_MR_REMOTE_WRITE | RNICD_MR_REMOTE_READ)),
        cq(MakeInC<rnicd_cq>(rnicd_create_cq, session.get(), depth, 0u)),
        qp(MakeInC<rnicd_qp>(rnicd_create_qp, cq.get(), cq.get(), nullptr)),
        chain(ChainInC()),
        info(QueryInC(mr.get())) {
    auto self = RNICD_INIT(rnicd_qp_info);
    EXPECT_EQ(rnicd_query_qp(qp.get(), &self), 0);
    EXPECT_EQ(rnicd_connect_qp(qp.get(), self.address, self.address_bytes), 0);
  }

  char* at(uint64_t offset) const { return static_cast<char*>(QueryInC(memory.get()).address) + offset; }
  rnicd_sge sge(uint64_t offset, uint32_t length) const { return {info.address + offset, length, info.local_token}; }
  // Posts the chain, which must be accepted, and empties it.
  void Post() const {
    EXPECT_EQ(rnicd_post(qp.get(), chain.get()), 0) << rnicd_last_error()->message;
    EXPECT_EQ(rnicd_chain_posted(chain.get()), rnicd_chain_length(chain.get()));
    EXPECT_EQ(rnicd_reset_chain(chain.get()), 0);
  }
  // The next completion; a test failure on timeout.
  rnicd_completion Next() const {
    rnicd_completion completion = {};
    EXPECT_EQ(rnicd_poll_cq_for(cq.get(), &completion, 1, static_cast<int>(kTimeout.count())), 1);
    return completion;
  }

  InC<rnicd_session> session;
  InC<rnicd_memory> memory;
  InC<rnicd_mr> mr;
  InC<rnicd_cq> cq;
  InC<rnicd_qp> qp;
  InC<rnicd_chain> chain;
  rnicd_mr_info info;
};

class RnicdInC : public DaemonTest {
 protected:
  explicit RnicdInC(const std::vector<std::string>& flags = {}) : DaemonTest(flags) {}
};

}  // namespace rnicd::test
