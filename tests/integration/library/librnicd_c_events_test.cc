// The C interface against the real daemon: callbacks, by rnicd_progress and by the library's thread; the end of the
// session; children made by fork.
#include <poll.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/library/librnicd_c_fixture.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/daemon_process.h"
#include "tests/support/process/held_card.h"

namespace rnicd::test {
namespace {

// What a callback was told, and on which thread.
class ToldInC {
 public:
  static void SessionEnded(void* self, const rnicd_error* why) { static_cast<ToldInC*>(self)->Set(nullptr, why); }
  static void Registered(void* self, rnicd_mr* mr, const rnicd_error* error) {
    static_cast<ToldInC*>(self)->Set(mr, error);
  }
  static void Closed(void* self, const rnicd_error* error) { static_cast<ToldInC*>(self)->Set(nullptr, error); }
  static void Disconnected(void* self) { static_cast<ToldInC*>(self)->Set(nullptr, nullptr); }

  bool came() const { return came_; }
  // Ends when the callback has run on another thread.
  void Wait() { EXPECT_EQ(told_.get_future().wait_for(kTimeout), std::future_status::ready); }
  // Runs a loop as a program would: sleeps on the descriptor, then lets callbacks run, until this one has.
  void Progress(rnicd_session* session) {
    pollfd descriptor = {.fd = rnicd_fd(session), .events = POLLIN, .revents = 0};
    while (!came_) {
      ASSERT_EQ(poll(&descriptor, 1, static_cast<int>(kTimeout.count())), 1);
      ASSERT_EQ(rnicd_progress(session, 0), 0);
    }
    EXPECT_EQ(thread, std::this_thread::get_id());
  }

  int calls = 0;
  rnicd_error error = {};
  InC<rnicd_mr> mr;
  std::thread::id thread;

 private:
  void Set(rnicd_mr* registered, const rnicd_error* why) {
    ++calls;
    mr.reset(registered);
    error = why != nullptr ? *why : rnicd_error{};
    thread = std::this_thread::get_id();
    came_ = true;
    told_.set_value();
  }

  std::promise<void> told_;
  std::atomic<bool> came_ = false;
};

rnicd_session_options OptionsWithEnd(ToldInC& told, uint32_t flags) {
  auto options = RNICD_INIT(rnicd_session_options);
  options.flags = flags;
  options.on_session_ended = ToldInC::SessionEnded;
  options.context = &told;
  return options;
}

// Closes a session that the daemon has ended.
void ExpectOver(InC<rnicd_session> session) { EXPECT_EQ(rnicd_close_session(session.release(), nullptr), -ECONNRESET); }

class RnicdEventsInC : public RnicdInC {};

TEST_F(RnicdEventsInC, EndOfTheSessionIsReportedByProgress) {
  ToldInC told;
  InC<rnicd_session> session = SessionInC(daemon(), OptionsWithEnd(told, 0));
  ExpectOk(Evict(daemon(), rnicd_session_id(session.get())));
  told.Progress(session.get());
  EXPECT_EQ(told.error.code, ECONNRESET);
  EXPECT_EQ(told.error.reason, static_cast<uint32_t>(RNICD_REASON_SESSION_ENDING));
  EXPECT_STREQ(told.error.field, "evicted");
  EXPECT_EQ(rnicd_progress(session.get(), 0), 0);
  EXPECT_EQ(told.calls, 1);
  ExpectOver(std::move(session));
}

TEST_F(RnicdEventsInC, EndOfTheSessionIsReportedByTheThread) {
  ToldInC told;
  InC<rnicd_session> session = SessionInC(daemon(), OptionsWithEnd(told, RNICD_THREAD));
  EXPECT_EQ(rnicd_fd(session.get()), -EINVAL);
  EXPECT_EQ(rnicd_progress(session.get(), 0), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "session");
  ExpectOk(Evict(daemon(), rnicd_session_id(session.get())));
  told.Wait();
  EXPECT_NE(told.thread, std::this_thread::get_id());
  EXPECT_STREQ(told.error.field, "evicted");
  ExpectOver(std::move(session));
}

TEST_F(RnicdEventsInC, OwnEndOfTheSessionIsNotReported) {
  for (const uint32_t flags : {0u, RNICD_THREAD}) {
    ToldInC told;
    SessionInC(daemon(), OptionsWithEnd(told, flags)).reset();
    EXPECT_FALSE(told.came());
  }
}

TEST_F(RnicdEventsInC, ProgressWaitsNoLongerThanItIsAsked) {
  const InC<rnicd_session> session = SessionInC(daemon());
  EXPECT_EQ(rnicd_progress(session.get(), 0), 0);
  EXPECT_EQ(rnicd_progress(session.get(), 1), 0);
}

TEST_F(RnicdEventsInC, DisconnectedPeerIsReported) {
  LoopInC owner(daemon());
  ToldInC told;
  auto options = RNICD_INIT(rnicd_qp_options);
  options.on_disconnected = ToldInC::Disconnected;
  options.context = &told;
  const InC<rnicd_qp> qp = MakeInC<rnicd_qp>(rnicd_create_qp, owner.cq.get(), owner.cq.get(), &options);
  auto self = RNICD_INIT(rnicd_qp_info);
  EXPECT_EQ(rnicd_query_qp(qp.get(), &self), 0);
  {
    const InC<rnicd_qp> peer = MakeInC<rnicd_qp>(rnicd_create_qp, owner.cq.get(), owner.cq.get(), nullptr);
    auto other = RNICD_INIT(rnicd_qp_info);
    EXPECT_EQ(rnicd_query_qp(peer.get(), &other), 0);
    EXPECT_EQ(rnicd_connect_qp(qp.get(), other.address, other.address_bytes), 0);
    EXPECT_EQ(rnicd_connect_qp(peer.get(), self.address, self.address_bytes), 0);
  }
  told.Progress(owner.session.get());
}

TEST_F(RnicdEventsInC, ALongAllocationReportsHowFarItIs) {
  static constexpr uint64_t kBytes = uint64_t{256} << 20;
  auto options = RNICD_INIT(rnicd_session_options);
  options.flags = RNICD_THREAD;
  const InC<rnicd_session> session = SessionInC(daemon(), options);
  std::vector<uint64_t> seen;
  auto pages = RNICD_INIT(rnicd_memory_options);
  pages.bytes = kBytes;
  pages.page_size = 4096;
  pages.flags = RNICD_MEMORY_NO_POPULATE;
  pages.context = &seen;
  pages.on_progress = [](void* context, uint64_t ready, uint64_t bytes) {
    EXPECT_EQ(bytes, kBytes);
    static_cast<std::vector<uint64_t>*>(context)->push_back(ready);
  };
  // What was not read before the answer is not reported, so an allocation may be silent.
  EXPECT_TRUE(Eventually([&] {
    seen.clear();
    MakeInC<rnicd_memory>(rnicd_allocate_memory, session.get(), &pages).reset();
    return !seen.empty();
  }));
  EXPECT_LT(seen.back(), kBytes);
}

class RnicdPendingInC : public RnicdInC {
 protected:
  explicit RnicdPendingInC(std::vector<std::string> flags = {}) : RnicdInC(AllPend(std::move(flags))) {}

 private:
  static std::vector<std::string> AllPend(std::vector<std::string> flags) {
    flags.emplace_back("--pending_threshold_bytes=4096");
    return flags;
  }
};

TEST_F(RnicdPendingInC, RegistrationAndCloseCallBackInProgress) {
  const InC<rnicd_session> session = SessionInC(daemon());
  const InC<rnicd_memory> memory = MemoryInC(session.get(), 1 << 20);
  ToldInC registered;
  ASSERT_EQ(rnicd_register_mr_async(memory.get(), 0, 1 << 20, 0, ToldInC::Registered, &registered), 0);
  registered.Progress(session.get());
  ASSERT_NE(registered.mr, nullptr) << registered.error.message;
  EXPECT_NE(QueryInC(registered.mr.get()).local_token, 0u);
  ToldInC closed;
  ASSERT_EQ(rnicd_close_mr_async(registered.mr.release(), ToldInC::Closed, &closed), 0);
  closed.Progress(session.get());
  EXPECT_EQ(closed.error.code, 0);
  EXPECT_EQ(UsedInC(session.get(), "regions"), 0u);
}

TEST_F(RnicdPendingInC, RegistrationCallsBackOnTheThread) {
  auto options = RNICD_INIT(rnicd_session_options);
  options.flags = RNICD_THREAD;
  const InC<rnicd_session> session = SessionInC(daemon(), options);
  const InC<rnicd_memory> memory = MemoryInC(session.get(), 1 << 20);
  ToldInC registered;
  ASSERT_EQ(rnicd_register_mr_async(memory.get(), 0, 1 << 20, 0, ToldInC::Registered, &registered), 0);
  registered.Wait();
  EXPECT_NE(registered.mr, nullptr) << registered.error.message;
  EXPECT_NE(registered.thread, std::this_thread::get_id());
}

TEST_F(RnicdPendingInC, RefusedRegistrationHasItsReason) {
  const InC<rnicd_session> session = SessionInC(daemon());
  const InC<rnicd_memory> memory = MemoryInC(session.get(), 1 << 20);
  ToldInC told;
  EXPECT_EQ(rnicd_register_mr_async(memory.get(), 0, 1 << 20, 0x1000, ToldInC::Registered, &told), 0);
  told.Progress(session.get());
  EXPECT_EQ(told.mr, nullptr);
  EXPECT_EQ(told.error.code, EINVAL);
  EXPECT_EQ(told.error.reason, static_cast<uint32_t>(RNICD_REASON_FLAGS_UNKNOWN));
  EXPECT_EQ(rnicd_register_mr_async(memory.get(), 0, 2 << 20, 0, ToldInC::Registered, &told), -EINVAL);
  EXPECT_EQ(rnicd_register_mr_async(memory.get(), 0, 1 << 20, 0, nullptr, nullptr), -EINVAL);
  EXPECT_STREQ(rnicd_last_error()->field, "done");
  EXPECT_EQ(told.calls, 1);
}

class RnicdHeldInC : public RnicdPendingInC {
 protected:
  RnicdHeldInC() : RnicdPendingInC({HoldableRegistrationsFlag()}) {}
};

TEST_F(RnicdHeldInC, CloseOfTheSessionCallsBackForWhatIsPending) {
  InC<rnicd_session> session = SessionInC(daemon());
  auto* const memory = MemoryInC(session.get(), 1 << 20).release();
  ToldInC told;
  HeldRegistrations held;
  ASSERT_EQ(rnicd_register_mr_async(memory, 0, 1 << 20, 0, ToldInC::Registered, &told), 0);
  EXPECT_FALSE(told.came());
  held.LetGo();
  EXPECT_EQ(rnicd_close_session(session.release(), nullptr), 0);
  EXPECT_TRUE(told.came());
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.mr != nullptr, told.error.code == 0);
  rnicd_close_mr(told.mr.release());
  EXPECT_EQ(rnicd_close_memory(memory), -ECONNRESET);
}

// The program is in C, and has no thread but its own.
class RnicdProgramInC : public RnicdInC {
 protected:
  void Run(const std::string& story) {
    auto program = ChildProcess::Start({.command = {RNICD_TEST_C_CLIENT_PATH, story, daemon().socket_dir()}});
    ASSERT_TRUE(program.ok()) << program.status();
    const std::optional<ProcessEnd> end = (*program)->WaitForEnd();
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->exit_code, 0) << (*program)->errors().Text();
  }
};

TEST_F(RnicdProgramInC, ChildOfForkIsRefusedOpensItsOwnSessionAndLeavesTheParentAlone) { Run("fork"); }
TEST_F(RnicdProgramInC, ChildOfForkBesideTheLibrarysThreadToo) { Run("fork-beside-thread"); }
TEST_F(RnicdProgramInC, HasNoThreadUnlessItAsksForOne) { Run("threads"); }

}  // namespace
}  // namespace rnicd::test
