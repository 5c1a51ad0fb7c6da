// Properties 1 and 2: the kernel identifies callers, and a reused pid does not give access to another process's
// session.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include "base/hex.h"
#include "tests/integration/http2_frames.h"
#include "tests/integration/trust_fixture.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/process/child_client.h"
#include "tests/support/process/raw_socket.h"

namespace rnicd::test {
namespace {

// A user that none of these tests has.
constexpr uint64_t kForgedId = 4242;
constexpr char kLastPidFile[] = "/proc/sys/kernel/ns_last_pid";

// Adds a forged value for every number that a present or future field might have.
void AddForgedFields(google::protobuf::Message& message, int first_number) {
  google::protobuf::UnknownFieldSet* const unknown = message.GetReflection()->MutableUnknownFields(&message);
  for (int number = first_number; number < first_number + 64; number += 2) {
    unknown->AddVarint(number, kForgedId);
    unknown->AddLengthDelimited(number + 1, std::to_string(kForgedId));
  }
}

void AddForgedMetadata(grpc::ClientContext& context) {
  for (const char* const name : {"uid", "gid", "pid", "tenant", "pod-uid", "role", "x-forwarded-user", "x-uid"}) {
    context.AddMetadata(name, std::to_string(kForgedId));
  }
  context.AddMetadata("authorization", "Basic cm9vdDpyb290");
  context.set_authority("root");
}

// Makes one call with forged values in every place that a client can write to.
template <typename Request, typename Response>
CallResult<Response> CallWithLies(RawClient& client, const Rpc<Request, Response>* method, Request request) {
  constexpr int kFirstUnknownField = 3;
  AddForgedFields(request, kFirstUnknownField);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  AddForgedMetadata(context);
  CallResult<Response> result;
  static_cast<CallOutcome&>(result) = client.Call(method->path, request, &result.response, context);
  return result;
}

std::string TenantOfUid(uid_t uid) { return "uid/uid=" + std::to_string(uid); }

// --- 1: identity from the kernel ---

TEST_F(Trust, Property01ForgedIdentityInARequestIsIgnored) {
  TestSession honest(daemon(), "honest");
  RawClient liar(daemon().rpc_socket());
  v1::OpenSessionRequest request;
  request.set_label("uid=4242 gid=4242 pid=1 tenant=uid/uid=4242 role=operator");
  const auto opened = CallWithLies(liar, &SessionStub::OpenSession, request);
  ASSERT_TRUE(ExpectOk(opened));
  EXPECT_EQ(opened.response.tenant(), TenantOfUid(geteuid()));
  const std::vector<v1::SessionInfo> sessions = AdminSessions(daemon());
  ASSERT_EQ(sessions.size(), 2u);
  for (const v1::SessionInfo& session : sessions) {
    EXPECT_EQ(session.uid(), geteuid());
    EXPECT_EQ(session.gid(), getegid());
    EXPECT_EQ(session.pid(), getpid());
    EXPECT_EQ(session.tenant(), TenantOfUid(geteuid()));
    // Both run in the same container as these tests.
    EXPECT_EQ(session.pod_uid(), sessions[0].pod_uid());
    EXPECT_EQ(session.container_id(), sessions[0].container_id());
  }
  ExpectRefused(CallWithLies(liar, &AdminStub::GetStatus, v1::GetStatusRequest()), ErrorReason::METHOD_NOT_PERMITTED);
}

TEST_F(Trust, Property01ASecretThatIsNoneMakesNobody) {
  for (const std::string& secret : {std::string("root"), std::string("uid=0"), std::string(1 << 16, 'x'),
                                    "rnicd-grant-" + std::string(16 + 1 + 64, '0')}) {
    RawClient client(daemon().rpc_socket());
    v1::OpenSessionRequest request;
    request.set_grant(secret);
    ExpectRefused(client.Call(&SessionStub::OpenSession, request), ErrorReason::GRANT_REFUSED, "grant");
  }
  EXPECT_EQ(AdminStatus(daemon()).sessions(), 0u);
}

TEST_F(Trust, Property01AnotherUserIsWhoItIsAndJoinsNobody) {
  TestSession ours(daemon(), "ours");
  const auto other = ChildClient::Start(daemon(), WorkloadUid());
  ASSERT_NE(other, nullptr);
  // The same label, and the name of another's tenant.
  const uint64_t theirs = other->MustRun("open ours").number("session");
  other->MustRun("connect");
  other->MustRun("open " + TenantOfUid(geteuid()));
  for (const v1::SessionInfo& session : AdminSessions(daemon())) {
    const bool is_ours = session.session_id() == ours.session_id();
    EXPECT_EQ(session.uid(), is_ours ? geteuid() : WorkloadUid());
    EXPECT_EQ(session.pid(), is_ours ? getpid() : other->process().pid());
    EXPECT_EQ(session.tenant(), TenantOfUid(session.uid()));
  }
  other->MustRun("connect");
  EXPECT_EQ(other->Run("join " + std::to_string(ours.session_id())).reason, "SESSION_NOT_FOUND");
  RawClient liar(daemon().rpc_socket());
  v1::JoinSessionRequest join;
  join.set_session_id(theirs);
  ExpectRefused(CallWithLies(liar, &SessionStub::JoinSession, join), ErrorReason::SESSION_NOT_FOUND, "session_id");
}

// Root may write any pid and uid into the credentials of a message; for other users the kernel refuses to send it.
TEST_F(Trust, Property01ForgedCredentialsOnTheFdSocketAreIgnored) {
  const auto owner = ChildClient::Start(daemon(), WorkloadUid());
  ASSERT_NE(owner, nullptr);
  owner->MustRun("open");
  const std::string digits = owner->MustRun("ticket 4096").values["ticket"];
  const std::string bytes = FdRequestBytes(BytesFromHex(digits).value(), 0);
  FdSocket socket(daemon().fd_socket());
  ASSERT_TRUE(socket.connected());
  const ucred forged = {.pid = owner->process().pid(), .uid = WorkloadUid(), .gid = static_cast<gid_t>(WorkloadUid())};
  std::vector<char> control(CMSG_SPACE(sizeof(forged)));
  iovec piece = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_CREDENTIALS;
  header->cmsg_len = CMSG_LEN(sizeof(forged));
  std::memcpy(CMSG_DATA(header), &forged, sizeof(forged));
  if (sendmsg(socket.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size())) {
    ExpectFdRefused(socket.Receive(), ErrorReason::TICKET_UNKNOWN);
  } else {
    EXPECT_EQ(errno, EPERM);
  }
  owner->MustRun("redeem " + digits);
}

// --- 2: a reused pid ---

// Stops the daemon for the lifetime of this object, so that all changes meanwhile look simultaneous to it.
class DaemonHeldStill {
 public:
  explicit DaemonHeldStill(DaemonProcess& daemon) : daemon_(daemon) { stopped_ = daemon.process().StopAndWait(); }
  ~DaemonHeldStill() { daemon_.process().Signal(SIGCONT); }
  DaemonHeldStill(const DaemonHeldStill&) = delete;
  DaemonHeldStill& operator=(const DaemonHeldStill&) = delete;

  bool stopped() const { return stopped_; }

 private:
  DaemonProcess& daemon_;
  bool stopped_ = false;
};

bool SetLastPid(pid_t pid) {
  const UniqueFd file(open(kLastPidFile, O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(pid);
  return file.valid() && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// True if this process may choose the next pid. If not, the newcomer in these tests is any other process, and only the
// tests of daemon/transport cover the reuse itself.
bool CanChoosePids() {
  static const bool can = SetLastPid(getpid());
  return can;
}

// A client whose process has this free pid; null if another process took it first.
std::unique_ptr<ChildClient> ClientWithPid(DaemonProcess& daemon, pid_t pid) {
  if (!CanChoosePids()) {
    return ChildClient::Start(daemon, WorkloadUid());
  }
  std::unique_ptr<ChildClient> client;
  Eventually(
      [&] {
        SetLastPid(pid - 1);
        client = ChildClient::Start(daemon, WorkloadUid());
        return client == nullptr || client->process().pid() == pid;
      },
      kTimeout / 10);
  return client != nullptr && client->process().pid() == pid ? std::move(client) : nullptr;
}

// Retries a scene that needs a certain pid, because other processes of the machine may take it. `scene` returns whether
// it got its pid.
void PlayUntilThePidIsFree(const std::function<bool()>& scene) {
  constexpr int kTries = 8;
  for (int tries = 0; tries < kTries; ++tries) {
    if (scene() || testing::Test::HasFailure()) {
      return;
    }
  }
  ADD_FAILURE() << "the pid of a process that had ended was never free again";
}

TEST_F(Trust, Property02AProcessWithAReusedPidCannotJoin) {
  PlayUntilThePidIsFree([&] {
    const auto client = ChildClient::Start(daemon(), WorkloadUid());
    if (client == nullptr) {
      return false;
    }
    const std::string session = client->MustRun("open first").values["session"];
    const std::string memory = client->MustRun("alloc 16384").values["memory"];
    client->MustRun("register " + memory + " 16384 7");
    // The child holds every socket of its parent, and stays alive.
    const auto heir = static_cast<pid_t>(client->MustRun("fork").number("pid"));
    const pid_t pid = client->process().pid();
    std::unique_ptr<ChildClient> newcomer;
    {
      const DaemonHeldStill still(daemon());
      EXPECT_TRUE(still.stopped());
      client->KillHard();
      newcomer = ClientWithPid(daemon(), pid);
      if (newcomer != nullptr) {
        newcomer->Send("join " + session);
      }
    }
    if (newcomer != nullptr) {
      EXPECT_EQ(newcomer->Answer().reason, "SESSION_NOT_FOUND");
      EXPECT_TRUE(Eventually([&] { return AdminStatus(daemon()).sessions() == 0; }))
          << "the child that holds the socket keeps the session";
      EXPECT_EQ(AdminStatus(daemon()).registered_pages(), 0u);
      // The newcomer is served as itself.
      EXPECT_NE(newcomer->MustRun("open second").values["session"], session);
      const std::vector<v1::SessionInfo> sessions = AdminSessions(daemon());
      EXPECT_EQ(sessions.size(), 1u);
      EXPECT_TRUE(sessions.empty() || sessions[0].label() == "second");
    }
    EXPECT_EQ(kill(heir, SIGKILL), 0) << "the child that holds the socket should have been alive all the time";
    return newcomer != nullptr;
  });
}

// Connects our socket in a child process that ends at once, so that the connection's peer is a dead process while we
// hold the socket. Returns the child's pid, which is free again. Uses the plain system call, because a process that has
// used gRPC does not survive the handlers of fork().
pid_t ConnectInAProcessThatEnds(int socket, const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto pid = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (pid == 0) {
    _exit(connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  return pid;
}

// On kernels that cannot name the process behind a socket the connection is attributed to the newcomer, as the threat
// model states. It still ends with that process, not with the process that holds it.
TEST_F(Trust, Property02AConnectionOfADeadProcessIsNotTheNewcomers) {
  // It has said Hello() in time, so nothing else ends the connection.
  SharedDaemon& patient = DaemonWith({"--silent_connection_timeout_ms=3600000"});
  DaemonProcess& daemon = *patient.process;
  PlayUntilThePidIsFree([&] {
    const UniqueFd left(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    std::unique_ptr<ChildClient> newcomer;
    {
      const DaemonHeldStill still(daemon);
      EXPECT_TRUE(still.stopped());
      newcomer = ClientWithPid(daemon, ConnectInAProcessThatEnds(left.get(), daemon.rpc_socket()));
      EXPECT_TRUE(SendBytes(left.get(), Hello() + Frame(FrameType::kSettings, kAcknowledge, 0, "")));
    }
    if (newcomer == nullptr) {
      return false;
    }
    newcomer->MustRun("open newcomer");
    if (daemon.log().find("identity=peer_pidfd") == std::string::npos) {
      newcomer->KillHard();
    }
    EXPECT_TRUE(HangsUp(left.get()));
    return true;
  });
  ExpectNothingHeld(daemon, patient.idle);
}

}  // namespace
}  // namespace rnicd::test
