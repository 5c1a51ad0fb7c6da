// What a client and an operator get of the whole daemon on Windows.
#include <windows.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "daemon/pipes/peer.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/admin_service.pb.h"
#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/session_service.pb.h"
#include "tests/windows_daemon/daemon_program.h"

namespace rnicd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kPage = 4096;

class TempFile {
 public:
  explicit TempFile(const std::string& content) {
    static int last = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("rnicd-" + std::to_string(GetCurrentProcessId()) + "-" + std::to_string(++last)))
                .string();
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TempFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string Content() const {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

// A session with one registered page, by calls alone.
struct RegisteredPage {
  explicit RegisteredPage(Client& client) {
    session = client.Call<v1::OpenSessionResponse>("SessionService/OpenSession", v1::OpenSessionRequest());
    const auto adapter = client.Call<v1::OpenAdapterResponse>("AdapterService/OpenAdapter", v1::OpenAdapterRequest());
    v1::CreatePdRequest domain;
    domain.set_adapter_id(adapter.adapter_id());
    v1::CreateMrRequest region;
    region.set_pd_id(client.Call<v1::CreatePdResponse>("MemoryService/CreatePd", domain).pd_id());
    v1::AllocateMemoryRequest memory;
    memory.set_size(kPage);
    allocated = client.Call<v1::AllocateMemoryResponse>("MemoryService/AllocateMemory", memory);
    // Its handle must have left the daemon before.
    core::FdTicket ticket;
    std::copy_n(allocated.fd_ticket().begin(), ticket.size(), ticket.begin());
    section.Reset(static_cast<int>(client.pipe().Take(ticket).handle()));
    v1::SealMemoryRequest seal;
    seal.set_memory_id(allocated.memory_id());
    client.Call<v1::SealMemoryResponse>("MemoryService/SealMemory", seal);
    v1::RegisterMrRequest request;
    request.set_mr_id(client.Call<v1::CreateMrResponse>("MemoryService/CreateMr", region).mr_id());
    v1::MdlEntry& entry = *request.add_mdl_chain();
    entry.set_memory_id(allocated.memory_id());
    entry.set_virtual_address(kPage);
    entry.set_byte_count(kPage);
    request.set_length(kPage);
    registered = client.Call<v1::RegisterMrResponse>("MemoryService/RegisterMr", request);
  }

  v1::OpenSessionResponse session;
  v1::AllocateMemoryResponse allocated;
  v1::RegisterMrResponse registered;
  UniqueFd section;
};

TEST(DaemonOnWindows, RegistersMemoryForAClientAndTakesItBackWhenItsPipeCloses) {
  DaemonProgram daemon;
  ASSERT_TRUE(daemon.serves()) << daemon.log();
  {
    Client client(daemon.pipe());
    const RegisteredPage page(client);
    EXPECT_EQ(page.registered.ntstatus(), 0u);
    EXPECT_NE(page.registered.registration().remote_token(), 0u);
    EXPECT_THAT(page.session.tenant(), HasSubstr("uid/sid=S-1-"));
    EXPECT_THAT(daemon.Page("/metrics"), HasSubstr("\nrnicd_sessions_opened_total 1\n"));
  }
  constexpr char kEnded[] = "\nrnicd_sessions_ended_total{cause=\"connection_lost\"} 1\n";
  EXPECT_TRUE(Eventually([&] { return daemon.Page("/metrics").find(kEnded) != std::string::npos; }))
      << daemon.log() << daemon.Page("/metrics");
}

TEST(DaemonOnWindows, ACallWithoutTheSecretOfItsProcessIsRefused) {
  DaemonProgram daemon;
  ASSERT_TRUE(daemon.serves()) << daemon.log();
  Client client(daemon.pipe());
  const std::string wrong(client.secret().size(), '0');
  const rpc::Response refused = client.Raw("SessionService/OpenSession", v1::OpenSessionRequest(), wrong);
  EXPECT_EQ(refused.Field("grpc-status"), "16") << refused.Field("grpc-message");
  client.Call<v1::OpenSessionResponse>("SessionService/OpenSession", v1::OpenSessionRequest());
}

TEST(DaemonOnWindows, AnOperatorSeesTheSessionAndItsUser) {
  DaemonProgram daemon;
  ASSERT_TRUE(daemon.serves()) << daemon.log();
  Client client(daemon.pipe());
  const RegisteredPage page(client);
  Client admin(daemon.admin_pipe());
  const auto listed = admin.Call<v1::ListSessionsResponse>("AdminService/ListSessions", v1::ListSessionsRequest());
  ASSERT_EQ(listed.sessions_size(), 1);
  EXPECT_EQ(listed.sessions(0).pid(), static_cast<int32_t>(GetCurrentProcessId()));
  EXPECT_EQ(listed.sessions(0).sid(), pipes::SidOfThisProcess());
  const rpc::Response refused = client.Raw("AdminService/ListSessions", v1::ListSessionsRequest(), client.secret());
  EXPECT_NE(refused.Field("grpc-status"), "0") << "a workload is no operator";
}

TEST(DaemonOnWindows, APolicyBySidDecidesTheTenantAndIsReadAgainOnDemand) {
  const TempFile policy("tenant { name: \"mine\" match { sid: \"" + pipes::SidOfThisProcess() + "\" } }\n");
  DaemonProgram daemon({"--policy_file=" + policy.path()});
  ASSERT_TRUE(daemon.serves()) << daemon.log();
  {
    Client client(daemon.pipe());
    EXPECT_EQ(client.Call<v1::OpenSessionResponse>("SessionService/OpenSession", v1::OpenSessionRequest()).tenant(),
              "mine");
  }
  std::ofstream(policy.path(), std::ios::binary)
      << "tenant { name: \"others\" match { sid: \"S-1-5-21-1-2-3-1001\" } }\n";
  Client admin(daemon.admin_pipe());
  admin.Call<v1::ReloadPolicyResponse>("AdminService/ReloadPolicy", v1::ReloadPolicyRequest());
  Client client(daemon.pipe());
  const rpc::Response refused = client.Raw("SessionService/OpenSession", v1::OpenSessionRequest(), client.secret());
  EXPECT_NE(refused.Field("grpc-status"), "0");
}

// Every process of a user is in the group of all users, S-1-1-0.
TEST(DaemonOnWindows, APolicyMatchesTheGroupsOfAUser) {
  const TempFile policy("tenant { name: \"everybody\" match { sid: \"S-1-1-0\" } }\n");
  DaemonProgram daemon({"--policy_file=" + policy.path()});
  ASSERT_TRUE(daemon.serves()) << daemon.log();
  Client client(daemon.pipe());
  EXPECT_EQ(client.Call<v1::OpenSessionResponse>("SessionService/OpenSession", v1::OpenSessionRequest()).tenant(),
            "everybody");
}

TEST(DaemonOnWindows, DecisionsAreInTheAuditLog) {
  const TempFile audit("");
  DaemonProgram daemon({"--audit_log=" + audit.path()});
  ASSERT_TRUE(daemon.serves()) << daemon.log();
  Client client(daemon.pipe());
  const RegisteredPage page(client);
  EXPECT_TRUE(Eventually([&] { return audit.Content().find("RegisterMr") != std::string::npos; })) << audit.Content();
}

TEST(DaemonOnWindows, ServesItsPages) {
  DaemonProgram daemon;
  ASSERT_TRUE(daemon.serves()) << daemon.log();
  EXPECT_THAT(daemon.Page("/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(daemon.Page("/readyz"), HasSubstr("200 OK"));
  EXPECT_THAT(daemon.Page("/"), HasSubstr("<!doctype html>"));
  EXPECT_THAT(daemon.Page("/status.json"), HasSubstr("\"adapters\""));
}

TEST(DaemonOnWindows, OwnsACardWhoseLibraryIsNamed) {
  DaemonProgram daemon({"--provider=networkdirect", std::string("--networkdirect_library=") + RNICD_CARD_LIBRARY});
  ASSERT_TRUE(daemon.serves()) << daemon.log();
  Client client(daemon.pipe());
  const auto listed = client.Call<v1::ListAdaptersResponse>("AdapterService/ListAdapters", v1::ListAdaptersRequest());
  ASSERT_GT(listed.adapters_size(), 0);
  EXPECT_EQ(listed.adapters(0).provider(), "networkdirect");
  const RegisteredPage page(client);
  EXPECT_EQ(page.registered.ntstatus(), 0u);
}

TEST(DaemonOnWindows, WrongFlagsAreReportedAllAtOnceAndEndWithTwo) {
  DaemonProgram daemon({"--rpc_threads=0", "--provider=verbs"});
  EXPECT_EQ(daemon.Wait(), 2u);
  EXPECT_THAT(daemon.log(), HasSubstr("--rpc_threads: must"));
  EXPECT_THAT(daemon.log(), HasSubstr("--provider: must be one of soft, networkdirect"));
}

TEST(DaemonOnWindows, AKilledDaemonCanBeStartedAgainAtOnce) {
  DaemonProgram first;
  ASSERT_TRUE(first.serves()) << first.log();
  Client client(first.pipe());
  const RegisteredPage page(client);
  first.Kill();
  EXPECT_TRUE(client.pipe().HangsUp());
  // The last of two flags counts.
  const DaemonProgram second({"--pipe=" + first.pipe().substr(std::string(R"(\\.\pipe\)").size())});
  EXPECT_TRUE(second.serves()) << second.log();
  EXPECT_NE(pipes::PipeClient(first.pipe()).Hello().port(), 0u) << "under the name of the first";
}

}  // namespace
}  // namespace rnicd::test
