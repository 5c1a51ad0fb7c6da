#include "tests/integration/library/killed_calls.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <future>

#include "base/files/unique_fd.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kPageInC = 4096;

// The result of a function that would write a handle to its last argument; a test failure if it does.
template <typename Handle, typename Make, typename... Arguments>
int Makes(Make make, Arguments... arguments) {
  Handle* handle = nullptr;
  const int result = make(arguments..., &handle);
  EXPECT_EQ(handle, nullptr);
  return result;
}

template <typename Handle, typename Close>
int Closes(Close close, Handle*& handle) {
  return close(std::exchange(handle, nullptr));
}

rnicd_memory_options OnePage() {
  auto options = RNICD_INIT(rnicd_memory_options);
  options.bytes = kPageInC;
  return options;
}

// What the callback of an asynchronous function was told, as the result of one that waits.
class AsyncResult {
 public:
  static void Registered(void* self, rnicd_mr* mr, const rnicd_error* error) {
    EXPECT_EQ(mr, nullptr);
    Closed(self, error);
  }
  static void Closed(void* self, const rnicd_error* error) {
    static_cast<AsyncResult*>(self)->told_.set_value(error != nullptr ? -error->code : 0);
  }
  // `begun`: what the function returned.
  int Of(int begun) {
    EXPECT_EQ(begun, 0);
    return told_.get_future().get();
  }

 private:
  std::promise<int> told_;  // A second call would throw.
};

int OpenSession(Orphan& /*orphan*/, const std::string& socket_dir) {
  auto options = RNICD_INIT(rnicd_session_options);
  options.socket_dir = socket_dir.c_str();
  return Makes<rnicd_session>(rnicd_open_session, &options);
}

int AllocateBatch(Orphan& orphan) {
  const std::array options = {OnePage(), OnePage()};
  std::array<rnicd_memory*, 2> memories = {};
  const int result = rnicd_allocate_batch(orphan.session, options.data(), options.size(), memories.data());
  EXPECT_TRUE(memories[0] == nullptr && memories[1] == nullptr);
  return result;
}

UniqueFd OnePageFile() {
  UniqueFd file(memfd_create("killed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(file.get(), kPageInC), 0);
  return file;
}

int ImportMapping(Orphan& orphan) {
  const UniqueFd file = OnePageFile();
  void* const mapped = mmap(nullptr, kPageInC, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  const int result = Makes<rnicd_memory>(rnicd_import_mapping, orphan.session, file.get(), mapped, kPageInC);
  EXPECT_EQ(munmap(mapped, kPageInC), 0);
  return result;
}

// The caller's pages are as they were.
int ReplaceMemory(Orphan& orphan) {
  auto* const pages =
      static_cast<char*>(mmap(nullptr, kPageInC, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  pages[1] = 'x';
  const int result = Makes<rnicd_memory>(rnicd_replace_memory, orphan.session, pages, kPageInC);
  EXPECT_EQ(pages[1], 'x');
  pages[2] = 'y';
  EXPECT_EQ(munmap(pages, kPageInC), 0);
  return result;
}

int RegisterBatch(Orphan& orphan) {
  const rnicd_range ranges[] = {{0, 1, 0, 0}, {1, 1, 0, 0}};
  rnicd_mr* mrs[2] = {};
  const int result = rnicd_register_batch(orphan.memory, ranges, 2, mrs);
  EXPECT_TRUE(mrs[0] == nullptr && mrs[1] == nullptr);
  return result;
}

int Provision(Orphan& orphan) {
  const rnicd_memory_options options = OnePage();
  const rnicd_range range = {0, 1, 0, 0};
  rnicd_memory* memory = nullptr;
  rnicd_mr* mr = nullptr;
  const int result = rnicd_provision(orphan.session, &options, &range, 1, &memory, &mr);
  EXPECT_TRUE(memory == nullptr && mr == nullptr);
  return result;
}

// A program that polls busily.
int PollUntilFailure(Orphan& orphan) {
  rnicd_completion completion;
  int result = 0;
  while (result == 0) {
    result = rnicd_poll_cq(orphan.cq, &completion, 1);
  }
  return result;
}

int PollForever(Orphan& orphan) {
  rnicd_completion completion;
  return rnicd_poll_cq_for(orphan.cq, &completion, 1, -1);
}

// A program that sleeps on the descriptor, as rnicd.h shows it.
int SleepUntilFailure(Orphan& orphan) {
  pollfd descriptor = {.fd = rnicd_cq_fd(orphan.cq), .events = POLLIN, .revents = 0};
  int result = descriptor.fd < 0 ? rnicd_prepare_cq(orphan.cq) : 0;
  while (result == 0) {
    result = rnicd_prepare_cq(orphan.cq);
    if (result == 1) {
      EXPECT_EQ(poll(&descriptor, 1, -1), 1);
      EXPECT_EQ(rnicd_stop_cq(orphan.cq), 0);
      rnicd_completion completion;
      result = rnicd_poll_cq(orphan.cq, &completion, 1);
    }
  }
  return result;
}

// Posts until there is no room in the ring. What was posted is reported by the failure of the queue.
int PostUntilFailure(Orphan& orphan) {
  int result = 0;
  while (result == 0) {
    result = rnicd_post_without_outcome(orphan.qp, orphan.chain.get());
  }
  EXPECT_EQ(PollForever(orphan), -ECONNRESET);
  return result;
}

std::vector<KilledCall> SessionCalls(const std::string& socket_dir) {
  return {
      {"rnicd_open_session", [=](auto& s) { return OpenSession(s, socket_dir); }, Sends::kAlways, -ECONNREFUSED,
       -ECONNREFUSED},
      {"rnicd_close_session", [](auto& s) { return Closes([](auto* x) { return CloseInC::Close(x); }, s.session); }},
      {"rnicd_query_session", [](auto& s) { return rnicd_query_session(s.session, nullptr, 0); }},
      {"rnicd_get_adapter",
       [](auto& s) {
         auto adapter = RNICD_INIT(rnicd_adapter);
         return rnicd_get_adapter(s.session, 0, &adapter, nullptr);
       }},
      {"rnicd_query_adapter",
       [](auto& s) {
         auto info = RNICD_INIT(rnicd_adapter_info);
         return rnicd_query_adapter(s.session, &info);
       }},
      {"rnicd_privileged_token",
       [](auto& s) {
         uint32_t token = 0;
         return rnicd_privileged_token(s.session, &token);
       }},
      // Waits for what the daemon sends; rnicd_close_session is called behind it.
      {"rnicd_progress", [](auto& s) { return rnicd_progress(s.session, -1); }, Sends::kNever, 0, 0},
  };
}

std::vector<KilledCall> MemoryCalls() {
  return {
      {"rnicd_allocate_memory",
       [](auto& s) {
         const rnicd_memory_options options = OnePage();
         return Makes<rnicd_memory>(rnicd_allocate_memory, s.session, &options);
       }},
      {"rnicd_allocate_batch", AllocateBatch},
      {"rnicd_import_memory",
       [](auto& s) { return Makes<rnicd_memory>(rnicd_import_memory, s.session, OnePageFile().get(), kPageInC); }},
      {"rnicd_import_mapping", ImportMapping},
      {"rnicd_replace_memory", ReplaceMemory},
      {"rnicd_close_memory", [](auto& s) { return Closes(rnicd_close_memory, s.memory); }},
      {"rnicd_register_mr",
       [](auto& s) { return Makes<rnicd_mr>(rnicd_register_mr, s.memory, uint64_t{0}, uint64_t{1}, 0u); }},
      {"rnicd_register_mdl",
       [](auto& s) {
         const rnicd_mdl entry = {s.memory, 0, 1, 0};
         return Makes<rnicd_mr>(rnicd_register_mdl, s.session, &entry, 1u, uint64_t{1}, 0u);
       }},
      {"rnicd_register_batch", RegisterBatch},
      {"rnicd_provision", Provision},
      {"rnicd_register_mr_async",
       [](auto& s) {
         AsyncResult result;
         return result.Of(rnicd_register_mr_async(s.memory, 0, 1, 0, AsyncResult::Registered, &result));
       }},
      {"rnicd_deregister_mr", [](auto& s) { return rnicd_deregister_mr(s.mr); }},
      {"rnicd_close_mr", [](auto& s) { return Closes(rnicd_close_mr, s.mr); }},
      {"rnicd_close_mrs", [](auto& s) { return rnicd_close_mrs(&s.mr, 1); }},
      {"rnicd_close_mr_async",
       [](auto& s) {
         AsyncResult result;
         return result.Of(rnicd_close_mr_async(std::exchange(s.mr, nullptr), AsyncResult::Closed, &result));
       }},
  };
}

std::vector<KilledCall> FastCalls() {
  return {
      {"rnicd_create_fast_mr", [](auto& s) { return Makes<rnicd_fast_mr>(rnicd_create_fast_mr, s.session, 1u, 0u); }},
      {"rnicd_fast_mr_token",
       [](auto& s) {
         uint32_t token = 0;
         return rnicd_fast_mr_token(s.fast_mr, &token);
       }},
      {"rnicd_close_fast_mr", [](auto& s) { return Closes(rnicd_close_fast_mr, s.fast_mr); }},
      {"rnicd_create_mapping",
       [](auto& s) { return Makes<rnicd_mapping>(rnicd_create_mapping, s.memory, uint64_t{0}, uint64_t{1}); }},
      {"rnicd_create_mapping_mdl",
       [](auto& s) {
         const rnicd_mdl entry = {s.memory, 0, 1, 0};
         return Makes<rnicd_mapping>(rnicd_create_mapping_mdl, s.session, &entry, 1u, uint64_t{1});
       }},
      {"rnicd_close_mapping", [](auto& s) { return Closes(rnicd_close_mapping, s.mapping); }},
      {"rnicd_create_mw", [](auto& s) { return Makes<rnicd_mw>(rnicd_create_mw, s.session); }},
      {"rnicd_mw_token",
       [](auto& s) {
         uint32_t token = 0;
         return rnicd_mw_token(s.mw, &token);
       }},
      {"rnicd_close_mw", [](auto& s) { return Closes(rnicd_close_mw, s.mw); }},
  };
}

std::vector<KilledCall> QueueCalls() {
  return {
      {"rnicd_create_cq", [](auto& s) { return Makes<rnicd_cq>(rnicd_create_cq, s.session, 1u, 0u); }},
      {"rnicd_poll_cq", PollUntilFailure, Sends::kByCalls},
      {"rnicd_poll_cq_for", PollForever, Sends::kByCalls},
      {"rnicd_arm_cq", [](auto& s) { return rnicd_arm_cq(s.cq, RNICD_NOTIFY_ANY); }},
      {"rnicd_wait_cq", [](auto& s) { return rnicd_wait_cq(s.cq, -1); }, Sends::kNever},
      {"rnicd_resize_cq", [](auto& s) { return rnicd_resize_cq(s.cq, 32); }},
      {"rnicd_cq_fd", [](auto& s) { return rnicd_cq_fd(s.cq); }, Sends::kAlways, -EOPNOTSUPP},
      {"rnicd_prepare_cq", SleepUntilFailure, Sends::kNever, -ENOENT, -ECONNRESET,
       [](auto& s) { (void)rnicd_cq_fd(s.cq); }},
      {"rnicd_close_cq", [](auto& s) { return Closes(rnicd_close_cq, s.cq); }},
      {"rnicd_create_qp", [](auto& s) { return Makes<rnicd_qp>(rnicd_create_qp, s.cq, s.cq, nullptr); }},
      {"rnicd_qp_state", [](auto& s) { return rnicd_qp_state(s.qp); }},
      {"rnicd_connect_qp", [](auto& s) { return rnicd_connect_qp(s.qp, "peer", 4); }},
      {"rnicd_disconnect_qp", [](auto& s) { return rnicd_disconnect_qp(s.qp); }},
      {"rnicd_flush_qp", [](auto& s) { return rnicd_flush_qp(s.qp); }},
      {"rnicd_close_qp", [](auto& s) { return Closes(rnicd_close_qp, s.qp); }},
      {"rnicd_post", [](auto& s) { return rnicd_post(s.qp, s.chain.get()); }},
      {"rnicd_post_without_outcome", PostUntilFailure},
  };
}

}  // namespace

std::vector<KilledCall> KilledCalls(const std::string& socket_dir) {
  std::vector<KilledCall> all = SessionCalls(socket_dir);
  for (const std::vector<KilledCall>& more : {MemoryCalls(), FastCalls(), QueueCalls()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace rnicd::test
