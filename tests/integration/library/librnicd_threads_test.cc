// Which threads librnicd makes, where callbacks run, and what is left in a child made by fork.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/transport_failure.h"
#include "tests/integration/library/librnicd_fixture.h"
#include "tests/support/admin_client.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

constexpr std::chrono::milliseconds kNoWait{0};

// Threads of this process that librnicd has made.
int EventThreads() {
  int found = 0;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    std::string name;
    std::ifstream(entry.path() / "comm") >> name;
    found += name == "rnicd-events" ? 1 : 0;
  }
  return found;
}

class LibrnicdThreads : public Librnicd {};

TEST_F(LibrnicdThreads, ASessionWithoutCallbacksHasNone) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, kClientPage);
  const MemoryRegion region = Must(MemoryRegion::Register(memory, 0));
  CompletionQueue queue = Must(CompletionQueue::Create(client, 16));
  QueuePair pair = Must(QueuePair::Create(queue, queue, {}));
  ASSERT_TRUE(pair.Connect(pair.address()).ok());
  EXPECT_EQ(Must(queue.PollFor(1, kNoWait)).size(), 0u);
  EXPECT_EQ(EventThreads(), 0);
}

TEST_F(LibrnicdThreads, ThatOfCallbacksStartsWithTheFirstAndEndsWithTheSession) {
  {
    const Client client = MustConnect();
    const Memory memory = MustAllocate(client, kClientPage);
    std::promise<void> registered;
    MemoryRegion::RegisterAsync(memory, memory.bytes(), 0,
                                [&](const absl::StatusOr<MemoryRegion>& /*region*/) { registered.set_value(); });
    registered.get_future().get();
    EXPECT_TRUE(Eventually([] { return EventThreads() == 1; })) << "it names itself";
  }
  EXPECT_EQ(EventThreads(), 0);
}

TEST_F(LibrnicdThreads, WithCallbacksInProgressTheProgramsLoopRunsThem) {
  std::optional<absl::Status> ended;
  std::thread::id ended_on;
  const Client client = MustConnect({.callbacks_in_progress = true, .on_session_ended = [&](const absl::Status& why) {
                                       ended = why;
                                       ended_on = std::this_thread::get_id();
                                     }});
  const int descriptor = Must(client.EventDescriptor());
  ExpectOk(Evict(daemon(), client.session_id().value));
  while (!ended.has_value()) {
    pollfd wait = {.fd = descriptor, .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&wait, 1, -1), 1);
    ASSERT_TRUE(client.Progress(kNoWait).ok());
  }
  EXPECT_EQ(ErrorInfoOf(*ended).field, "evicted");
  EXPECT_EQ(ended_on, std::this_thread::get_id());
  EXPECT_EQ(EventThreads(), 0);
  pollfd over = {.fd = descriptor, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&over, 1, 0), 0) << "the end is reported once";
}

TEST_F(LibrnicdThreads, EventsThatACallHasReadAreDueInProgress) {
  bool ended = false;
  const Client client = MustConnect(
      {.callbacks_in_progress = true, .on_session_ended = [&](const absl::Status& /*why*/) { ended = true; }});
  const int descriptor = Must(client.EventDescriptor());
  ExpectOk(Evict(daemon(), client.session_id().value));
  EXPECT_TRUE(Eventually([&] {
    // It reads what waits on the connection.
    EXPECT_FALSE(client.GetSession().ok());
    pollfd due = {.fd = descriptor, .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&due, 1, -1), 1);
    EXPECT_TRUE(client.Progress(kNoWait).ok());
    return ended;
  }));
}

TEST_F(LibrnicdThreads, ProgressIsForThoseWhoAskedForIt) {
  const Client client = MustConnect();
  EXPECT_TRUE(FailedWith(client.Progress(kNoWait), ErrorReason::FIELD_OUT_OF_RANGE));
}

TEST_F(LibrnicdThreads, AChildOfForkIsRefusedOpensItsOwnSessionAndLeavesTheParentAlone) {
  auto client = std::make_unique<Client>(MustConnect({.on_session_ended = [](const absl::Status& /*why*/) {}}));
  auto memory = std::make_unique<Memory>(MustAllocate(*client, kClientPage));
  auto region = std::make_unique<MemoryRegion>(Must(MemoryRegion::Register(*memory, 0)));
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status refused = client->GetSession().status();
    region.reset();
    memory.reset();
    client.reset();
    const bool own = Connect().ok();
    _exit(refused.code() == absl::StatusCode::kFailedPrecondition && own ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(UsedBy(*client, "regions"), 1u);
}

// Without a thread that listens, those who wait and those who poll find out themselves.
TEST(LibrnicdWithoutThreads, WaitersAndPollersLearnThatTheDaemonWasKilled) {
  const auto daemon = Must(DaemonProcess::Start({}));
  const Client client = Must(Client::Connect({.socket_dir = daemon->socket_dir()}));
  CompletionQueue polled = Must(CompletionQueue::Create(client, 16));
  CompletionQueue waited = Must(CompletionQueue::Create(client, 16));
  daemon->KillHard();
  EXPECT_TRUE(IsTransportFailure(waited.PollFor(1, kTimeout).status()));
  EXPECT_TRUE(Eventually([&] { return IsTransportFailure(polled.Poll(1).status()); }));
  EXPECT_TRUE(IsTransportFailure(polled.WaitForNotification(kTimeout).status()));
  EXPECT_EQ(EventThreads(), 0);
}

}  // namespace
}  // namespace rnicd::test
