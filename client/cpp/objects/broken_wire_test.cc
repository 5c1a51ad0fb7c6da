// The library with a daemon whose answers the real one never gives: it fails, leaves nothing behind, and does not hang.
// Garbage on the fd socket is in fd_socket_test.cc.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/objects/fake_daemon_fixture.h"
#include "client/cpp/transport_failure.h"
#include "rnicd/v1/error.pb.h"
#include "rnicd/v1/fd_channel.pb.h"
#include "rnicd/v1/memory_service.pb.h"

namespace rnicd::inline client {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kSize = 1U << 20;
constexpr uint64_t kUnknownId = 999;

v1::OpenSessionResponse SessionWithSocket(const std::string& name) {
  v1::OpenSessionResponse response;
  response.set_session_id(7);
  response.set_fd_socket_name(name);
  return response;
}

v1::ErrorDetail DetailOf(ErrorReason reason) {
  v1::ErrorDetail detail;
  detail.set_reason(static_cast<v1::ErrorReason>(reason));
  return detail;
}

// Answers with a file of that size.
auto ServeFile(uint64_t size) {
  return [size](int connection) {
    ReceiveFdRequest(connection);
    const UniqueFd file(memfd_create("fake", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(size)), 0);
    SendFdPacket(connection, "", {file.get()});
  };
}

// Timeout of promised events; only a failing test waits so long.
template <typename Value>
Value Await(std::future<Value> promised) {
  const bool came = promised.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  return came ? promised.get() : Value(absl::DeadlineExceededError("did not come"));
}

// A session with a daemon that is sound so far.
class BrokenWireTest : public testing::Test {
 protected:
  BrokenWireTest() {
    daemon_.Answer("OpenSession", SessionWithSocket("fd.sock"));
    daemon_.ServeFd(ServeFile(kSize));
  }

  absl::StatusOr<Client> Connect(ClientOptions options = {}) {
    options.socket_dir = daemon_.socket_dir();
    return Client::Connect(options);
  }
  // A pending registration, and the place for its outcome.
  std::future<absl::StatusOr<MemoryRegion>> RegisterPending(const Memory& memory) {
    v1::RegisterMrResponse pending;
    pending.set_ntstatus(static_cast<uint32_t>(NtStatus::kPending));
    daemon_.Answer("RegisterMr", pending);
    auto promise = std::make_shared<std::promise<absl::StatusOr<MemoryRegion>>>();
    MemoryRegion::RegisterAsync(memory, memory.bytes(), 0, [promise](absl::StatusOr<MemoryRegion> region) {
      promise->set_value(std::move(region));
    });
    return promise->get_future();
  }
  // Three parts of the memory in one batch.
  static absl::Status RegisterThree(const Memory& memory) {
    const std::vector<std::span<const std::byte>> parts(3, memory.bytes().first(4096));
    return MemoryRegion::RegisterBatch(memory, parts, 0).status();
  }

  FakeDaemon daemon_;
};

TEST_F(BrokenWireTest, SocketNameThatIsAPathIsRefused) {
  daemon_.Answer("OpenSession", SessionWithSocket("../fd.sock"));
  const absl::Status status = Connect().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(IsTransportFailure(status)) << status;
}

TEST_F(BrokenWireTest, AnswerThatIsNoMessageIsATransportFailure) {
  const auto client = Connect();
  ASSERT_TRUE(client.ok()) << client.status();
  daemon_.AnswerBytes("GetSession", "\xff\xff\xff\xff");
  EXPECT_TRUE(IsTransportFailure(client->GetSession().status())) << client->GetSession().status();
}

TEST_F(BrokenWireTest, LostAnswerRunsIntoTheDeadline) {
  daemon_.NeverAnswer("GetSession");
  // Long enough to open a session on a busy machine.
  const auto client = Connect({.call_deadline = milliseconds(1000)});
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Status status = client->GetSession().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(IsTransportFailure(status)) << status;
}

TEST_F(BrokenWireTest, AfterOneLostAnswerDestructorsDoNotCallAnyMore) {
  {
    const auto client = Connect({.release_deadline = milliseconds(1000)});
    const auto memory = Memory::Allocate(*client, {.size = kSize});
    ASSERT_TRUE(memory.ok()) << memory.status();
    daemon_.NeverAnswer("CloseMr");
    const auto first = MemoryRegion::Register(*memory, 0);
    const auto second = MemoryRegion::Register(*memory, 0);
    EXPECT_TRUE(first.ok() && second.ok());
  }
  EXPECT_EQ(daemon_.Calls("CloseMr"), 1);
  EXPECT_EQ(daemon_.Calls("ReleaseMemory"), 0);
  EXPECT_EQ(daemon_.Calls("CloseSession"), 0);
}

TEST_F(BrokenWireTest, NewMemoryWhoseDescriptorIsRefusedIsGivenBack) {
  daemon_.ServeFd([](int connection) {
    ReceiveFdRequest(connection);
    v1::FdReply reply;
    *reply.mutable_error() = DetailOf(ErrorReason::MEMORY_NOT_SEALABLE);
    SendFdPacket(connection, reply.SerializeAsString(), {});
  });
  const auto client = Connect();
  EXPECT_TRUE(FailedWith(Memory::Allocate(*client, {.size = kSize}).status(), ErrorReason::MEMORY_NOT_SEALABLE));
  EXPECT_EQ(daemon_.Calls("ReleaseMemory"), 1);
}

// The real daemon refuses such a file itself.
TEST_F(BrokenWireTest, FileShorterThanItsMappingIsRefusedInsteadOfRaisingSigbus) {
  const auto client = Connect();
  daemon_.ServeFd(ServeFile(4096));
  EXPECT_TRUE(FailedWith(Memory::Allocate(*client, {.size = kSize}).status(), ErrorReason::MEMORY_TOO_SHORT));
  EXPECT_EQ(daemon_.Calls("ReleaseMemory"), 1);
  daemon_.ServeFd([](int connection) {
    ReceiveFdRequest(connection);
    SendFdPacket(connection, "", {});
  });
  const UniqueFd file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(file.get(), 4096), 0);
  EXPECT_TRUE(FailedWith(Memory::Import(*client, file.get(), kSize).status(), ErrorReason::MEMORY_TOO_SHORT));
  EXPECT_EQ(daemon_.Calls("ReleaseMemory"), 2);
}

TEST_F(BrokenWireTest, BatchWithAnotherNumberOfOutcomesIsATransportFailureAndItsRegionsAreClosed) {
  const auto client = Connect();
  const auto memory = Memory::Allocate(*client, {.size = kSize});
  ASSERT_TRUE(memory.ok()) << memory.status();
  v1::BatchCreateMrResponse created;
  created.add_outcomes()->mutable_response()->set_mr_id(1);
  daemon_.Answer("BatchCreateMr", created);
  EXPECT_EQ(RegisterThree(*memory).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(daemon_.Calls("BatchRegisterMr"), 0);
  created.add_outcomes()->mutable_response()->set_mr_id(2);
  created.add_outcomes()->mutable_response()->set_mr_id(3);
  daemon_.Answer("BatchCreateMr", created);
  v1::BatchRegisterMrResponse registered;
  registered.add_outcomes()->mutable_response();
  daemon_.Answer("BatchRegisterMr", registered);
  const absl::Status status = RegisterThree(*memory);
  EXPECT_TRUE(IsTransportFailure(status)) << status;
  EXPECT_EQ(daemon_.Calls("BatchCloseMr"), 1);
}

TEST_F(BrokenWireTest, EventsOfUnknownObjectsAreIgnored) {
  std::promise<absl::Status> ended;
  const auto client = Connect({.on_session_ended = [&ended](const absl::Status& why) { ended.set_value(why); }});
  v1::WatchEventsResponse event;
  event.mutable_request_completed()->set_request_context(kUnknownId);
  daemon_.SendEvent(event);
  event.mutable_cq_notification()->set_cq_id(kUnknownId);
  daemon_.SendEvent(event);
  event.mutable_qp_disconnected()->set_qp_id(kUnknownId);
  daemon_.SendEvent(event);
  daemon_.SendEvent({});
  event.mutable_session_ending()->set_cause("after them");
  daemon_.SendEvent(event);
  daemon_.EndEvents(grpc::Status::OK);
  EXPECT_EQ(ErrorInfoOf(Await(ended.get_future())).field, "after them");
}

TEST_F(BrokenWireTest, TheRemovalOfTheAdapterIsReported) {
  std::promise<absl::Status> removed;
  const auto client = Connect({.on_adapter_removed = [&removed] { removed.set_value(absl::OkStatus()); }});
  v1::WatchEventsResponse event;
  event.mutable_adapter_removed()->set_adapter_id(kUnknownId);
  daemon_.SendEvent(event);
  EXPECT_TRUE(Await(removed.get_future()).ok());
}

// The real daemon completes everything before it ends a session.
TEST_F(BrokenWireTest, EndOfSessionFailsWhatWasNotCompletedAndWhatWouldPend) {
  const auto client = Connect();
  const auto memory = Memory::Allocate(*client, {.size = kSize});
  ASSERT_TRUE(memory.ok()) << memory.status();
  auto outcome = RegisterPending(*memory);
  v1::WatchEventsResponse event;
  event.mutable_session_ending()->set_cause("daemon_stopping");
  daemon_.SendEvent(event);
  daemon_.EndEvents(grpc::Status::OK);
  const absl::Status status = Await(std::move(outcome)).status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::SESSION_ENDING));
  EXPECT_EQ(ErrorInfoOf(status).field, "daemon_stopping");
  EXPECT_EQ(daemon_.Calls("CloseMr"), 1) << "its region is closed";
  EXPECT_TRUE(FailedWith(Await(RegisterPending(*memory)).status(), ErrorReason::SESSION_ENDING));
}

TEST_F(BrokenWireTest, EventStreamThatIsCutFailsWhatPendsAndIsReported) {
  std::promise<absl::Status> ended;
  const auto client = Connect({.on_session_ended = [&ended](const absl::Status& why) { ended.set_value(why); }});
  const auto memory = Memory::Allocate(*client, {.size = kSize});
  ASSERT_TRUE(memory.ok()) << memory.status();
  auto outcome = RegisterPending(*memory);
  daemon_.EndEvents(grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut"));
  EXPECT_TRUE(IsTransportFailure(Await(ended.get_future())));
  EXPECT_TRUE(IsTransportFailure(Await(std::move(outcome)).status()));
}

TEST_F(BrokenWireTest, WhereEventsAreRefusedWhatWouldPendIsRefusedToo) {
  v1::RpcStatus details;
  details.add_details()->PackFrom(DetailOf(ErrorReason::EVENT_STREAM_ALREADY_OPEN));
  daemon_.RefuseEvents(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "refused", details.SerializeAsString()));
  std::promise<absl::Status> ended;
  const auto client = Connect({.on_session_ended = [&ended](const absl::Status& why) { ended.set_value(why); }});
  const auto memory = Memory::Allocate(*client, {.size = kSize});
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_TRUE(FailedWith(Await(ended.get_future()), ErrorReason::EVENT_STREAM_ALREADY_OPEN));
  EXPECT_TRUE(FailedWith(Await(RegisterPending(*memory)).status(), ErrorReason::EVENT_STREAM_ALREADY_OPEN));
}

// A client that meets an older generation of the daemon, which hands its sockets over to a newer one.
class HandedOver : public testing::Test {
 protected:
  HandedOver() { newer_.Answer("OpenSession", SessionWithSocket("fd.sock")); }

  // From now on who connects to the older generation's directory reaches the newer one.
  static std::function<void()> HandOver(const std::string& from, const std::string& to) {
    return [from, to] { std::filesystem::rename(to + "/rpc.sock", from + "/rpc.sock"); };
  }

  FakeDaemon newer_;
};

TEST_F(HandedOver, RefusedOpenSessionIsAskedAgainOverANewConnection) {
  FakeDaemon older;
  older.Refuse("OpenSession", ErrorReason::DAEMON_HANDED_OVER, HandOver(older.socket_dir(), newer_.socket_dir()));
  const auto client = Client::Connect({.socket_dir = older.socket_dir()});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->session_id(), SessionId{7});
  EXPECT_EQ(older.Calls("OpenSession"), 1);
  EXPECT_EQ(newer_.Calls("OpenSession"), 1);
}

TEST_F(HandedOver, ConnectionThatEndsBeforeTheAnswerIsReplaced) {
  const TemporaryDirectory older;
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  (older.path() + "/rpc.sock").copy(address.sun_path, sizeof(address.sun_path) - 1);
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  std::thread ends([&] {
    const UniqueFd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    HandOver(older.path(), newer_.socket_dir())();
  });
  const auto client = Client::Connect({.socket_dir = older.path()});
  ends.join();
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(newer_.Calls("OpenSession"), 1);
}

TEST_F(HandedOver, OtherCallsAreNotRepeated) {
  newer_.Refuse("GetSession", ErrorReason::DAEMON_HANDED_OVER, [] {});
  const auto client = Client::Connect({.socket_dir = newer_.socket_dir()});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE(FailedWith(client->GetSession().status(), ErrorReason::DAEMON_HANDED_OVER));
  EXPECT_EQ(newer_.Calls("GetSession"), 1);
}

}  // namespace
}  // namespace rnicd::inline client
