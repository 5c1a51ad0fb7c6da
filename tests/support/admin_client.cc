#include "tests/support/admin_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/calls/expect.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/process/wait.h"
#include "tests/support/queue_client.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

// gRPC starts a few threads under load and keeps some of them; one leaked thread per client would be many more.
constexpr uint64_t kThreadSlack = 4;

// A provider may start its completion thread with the first queue.
constexpr QueueOptions kSmallestQueue = {.cq_depth = 1,
                                         .receive_queue_depth = 1,
                                         .initiator_queue_depth = 1,
                                         .max_receive_request_sge = 1,
                                         .max_initiator_request_sge = 1,
                                         .inline_data_size = 0};

void AddMismatch(std::ostringstream& text, const std::string& name, uint64_t actual, uint64_t expected) {
  if (actual > expected) {
    text << name << "=" << actual << " (expected " << expected << ") ";
  }
}

// The files that the daemon keeps ready for clients: none of them holds these.
struct ReadyFiles {
  uint64_t files = 0;
  uint64_t wanted = 0;
  uint64_t bytes = 0;
};

ReadyFiles ReadyFilesOf(const v1::GetStatusResponse& status) {
  ReadyFiles ready;
  for (const auto& each : status.memory_pool().classes()) {
    ready.files += each.ready();
    ready.wanted += each.files();
    ready.bytes += each.ready() * each.file_bytes();
  }
  return ready;
}

// What of a resource the files that are ready use; of the heap, the most that it may be.
uint64_t UsedByReadyFiles(const ReadyFiles& ready, const std::string& resource) {
  if (resource == "memory_bytes") {
    return ready.bytes;
  }
  return resource == "heap_bytes" ? ready.bytes / 256 : 0;
}

std::string HeldBesidesProcess(const v1::GetStatusResponse& status) {
  std::ostringstream text;
  AddMismatch(text, "sessions", status.sessions(), 0);
  AddMismatch(text, "sessions_ending", status.sessions_ending(), 0);
  AddMismatch(text, "connections", status.connections(), 1);
  AddMismatch(text, "registered_pages", status.registered_pages(), 0);
  AddMismatch(text, "fd_tickets", status.fd_tickets(), 0);
  AddMismatch(text, "device_regions", status.device_regions(), 0);
  for (const v1::ResourceUse& use : status.resources()) {
    AddMismatch(text, use.name(), use.used(), UsedByReadyFiles(ReadyFilesOf(status), use.name()));
  }
  return text.str();
}

// librdmacm opens a card with its first address, and keeps it open. Not every policy and card permits it.
void ListenOnce(TestSession& session) {
  v1::CreateListenerRequest create;
  create.set_adapter_id(session.adapter_id());
  v1::ListenRequest listen;
  listen.set_listener_id(session.Call(&ConnectionStub::CreateListener, create).response.listener_id());
  session.Call(&ConnectionStub::Listen, listen);
}

}  // namespace

v1::GetStatusResponse AdminStatus(const DaemonProcess& daemon) {
  RawClient client(daemon.admin_socket());
  const auto status = client.Call(&AdminStub::GetStatus, {});
  ExpectOk(status);
  return status.response;
}

std::vector<v1::SessionInfo> AdminSessions(const DaemonProcess& daemon) {
  RawClient client(daemon.admin_socket());
  std::vector<v1::SessionInfo> sessions;
  v1::ListSessionsRequest request;
  do {
    const auto page = client.Call(&AdminStub::ListSessions, request);
    if (!ExpectOk(page)) {
      break;
    }
    sessions.insert(sessions.end(), page.response.sessions().begin(), page.response.sessions().end());
    request.set_page_token(page.response.next_page_token());
  } while (!request.page_token().empty());
  return sessions;
}

std::vector<v1::RegionInfo> AdminRegions(const DaemonProcess& daemon) {
  RawClient client(daemon.admin_socket());
  std::vector<v1::RegionInfo> regions;
  v1::ListRegionsRequest request;
  do {
    const auto page = client.Call(&AdminStub::ListRegions, request);
    if (!ExpectOk(page)) {
      break;
    }
    regions.insert(regions.end(), page.response.regions().begin(), page.response.regions().end());
    request.set_page_token(page.response.next_page_token());
  } while (!request.page_token().empty());
  return regions;
}

std::optional<v1::RegionInfo> AdminRegion(const DaemonProcess& daemon, uint64_t mr_id) {
  for (const v1::RegionInfo& region : AdminRegions(daemon)) {
    if (region.mr_id() == mr_id) {
      return region;
    }
  }
  return std::nullopt;
}

std::vector<v1::ListenerInfo> AdminListeners(const DaemonProcess& daemon) {
  const auto page = RawClient(daemon.admin_socket()).Call(&AdminStub::ListListeners, {});
  ExpectOk(page);
  return {page.response.listeners().begin(), page.response.listeners().end()};
}

std::vector<v1::ConnectionInfo> AdminConnections(const DaemonProcess& daemon) {
  const auto page = RawClient(daemon.admin_socket()).Call(&AdminStub::ListConnections, {});
  ExpectOk(page);
  return {page.response.connections().begin(), page.response.connections().end()};
}

std::vector<v1::TenantInfo> AdminTenants(const DaemonProcess& daemon) {
  const auto tenants = RawClient(daemon.admin_socket()).Call(&AdminStub::ListTenants, {});
  ExpectOk(tenants);
  return {tenants.response.tenants().begin(), tenants.response.tenants().end()};
}

std::optional<v1::TenantInfo> AdminTenant(const DaemonProcess& daemon, const std::string& name) {
  for (const v1::TenantInfo& tenant : AdminTenants(daemon)) {
    if (tenant.name() == name) {
      return tenant;
    }
  }
  return std::nullopt;
}

std::vector<v1::GrantInfo> AdminGrants(const DaemonProcess& daemon) {
  const auto grants = RawClient(daemon.admin_socket()).Call(&AdminStub::ListGrants, {});
  ExpectOk(grants);
  return {grants.response.grants().begin(), grants.response.grants().end()};
}

std::string AdminDump(const DaemonProcess& daemon) {
  const auto dump = RawClient(daemon.admin_socket()).Call(&AdminStub::DumpState, {});
  ExpectOk(dump);
  return dump.response.json();
}

CallResult<v1::EvictSessionResponse> Evict(const DaemonProcess& daemon, uint64_t session_id) {
  v1::EvictSessionRequest request;
  request.set_session_id(session_id);
  return RawClient(daemon.admin_socket()).Call(&AdminStub::EvictSession, request);
}

CallResult<v1::DrainResponse> Drain(const DaemonProcess& daemon, bool resume) {
  v1::DrainRequest request;
  request.set_resume(resume);
  return RawClient(daemon.admin_socket()).Call(&AdminStub::Drain, request);
}

CallResult<v1::CreateGrantResponse> CreateGrant(const DaemonProcess& daemon, const v1::CreateGrantRequest& request) {
  return RawClient(daemon.admin_socket()).Call(&AdminStub::CreateGrant, request);
}

CallResult<v1::RevokeGrantResponse> RevokeGrant(const DaemonProcess& daemon, uint64_t grant_id) {
  v1::RevokeGrantRequest request;
  request.set_grant_id(grant_id);
  return RawClient(daemon.admin_socket()).Call(&AdminStub::RevokeGrant, request);
}

uint64_t Used(const v1::GetStatusResponse& status, const std::string& resource) {
  for (const v1::ResourceUse& use : status.resources()) {
    if (use.name() == resource) {
      return use.used();
    }
  }
  ADD_FAILURE() << "GetStatus does not report " << resource;
  return 0;
}

IdleState MeasureIdle(DaemonProcess& daemon) {
  {
    TestSession session(daemon, "warm-up");
    const uint64_t memory = session.SealedMemory(kPage);
    session.RegisterWhole(session.CreateMr(), memory, kPage);
    const TestQueue queue(session, kSmallestQueue);
    ListenOnce(session);
    ExpectOk(session.CloseSession());
  }
  IdleState idle;
  EXPECT_TRUE(Eventually([&] {
    const v1::GetStatusResponse status = AdminStatus(daemon);
    const ReadyFiles ready = ReadyFilesOf(status);
    idle = {.open_fds = status.open_fds() - ready.files, .threads = status.threads()};
    return ready.files == ready.wanted && HeldBesidesProcess(status).empty();
  })) << "the daemon does not come to rest: "
      << HeldBesidesProcess(AdminStatus(daemon));
  return idle;
}

std::string WhatIsHeld(const DaemonProcess& daemon, const IdleState& idle) {
  const auto answer = RawClient(daemon.admin_socket()).Call(&AdminStub::GetStatus, {});
  if (!answer.ok()) {
    // After a flood even the operator's connection may have to wait for a free slot.
    return "no answer to the operator: " + answer.message;
  }
  const v1::GetStatusResponse& status = answer.response;
  std::ostringstream text;
  text << HeldBesidesProcess(status);
  AddMismatch(text, "open_fds", status.open_fds(), idle.open_fds + ReadyFilesOf(status).files);
  AddMismatch(text, "threads", status.threads(), idle.threads + kThreadSlack);
  return text.str();
}

void ExpectNothingHeld(const DaemonProcess& daemon, const IdleState& idle) {
  std::string held;
  EXPECT_TRUE(Eventually([&] {
    held = WhatIsHeld(daemon, idle);
    return held.empty();
  })) << "the daemon still holds: "
      << held;
}

}  // namespace rnicd::test
