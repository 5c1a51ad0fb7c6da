#pragma once

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "base/ntstatus.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"

// Helpers of the trust_*_test.cc files. Their tests are named after the number of a property in docs/THREAT_MODEL.md.
namespace rnicd::test {

inline constexpr uint32_t kEveryMrRight =
    v1::MR_FLAG_ALLOW_LOCAL_WRITE | v1::MR_FLAG_ALLOW_REMOTE_READ | v1::MR_FLAG_ALLOW_REMOTE_WRITE;
inline constexpr uint32_t kAccessViolation = static_cast<uint32_t>(NtStatus::kAccessViolation);

// A session's page, registered at kBase with every right for all peers of its protection domain.
struct SharedPage {
  explicit SharedPage(TestSession& session, const std::string& text = "")
      : memory(session, kPage), mr_id(session.CreateMr()) {
    memory.SetText(0, text);
    registration = session.RegisterWhole(mr_id, memory.id(), kPage, kEveryMrRight);
  }
  v1::Sge FirstBytes(size_t count) const {
    return Sge(kBase, static_cast<uint32_t>(count), registration.local_token());
  }

  TestMemory memory;
  uint64_t mr_id = 0;
  v1::Registration registration;
};

// Reads at `address` into the sink and returns the NTSTATUS. A read that fails ends the connection.
inline uint32_t ReadFrom(TestQueue& queue, const SharedPage& sink, uint64_t address, uint32_t token, size_t count,
                         Where where = Where::current()) {
  return queue.Run(ReadRequest({sink.FirstBytes(count)}, address, token), where).result().ntstatus();
}

// What is used of one resource.
inline uint64_t UsedOf(const google::protobuf::RepeatedPtrField<v1::ResourceUse>& resources, const std::string& name) {
  for (const v1::ResourceUse& use : resources) {
    if (use.name() == name) {
      return use.used();
    }
  }
  ADD_FAILURE() << name << " is not reported";
  return 0;
}

// Empty, after a test failure, when there is none.
inline v1::TenantInfo TenantNamed(const DaemonProcess& daemon, const std::string& name) {
  const auto tenant = AdminTenant(daemon, name);
  EXPECT_TRUE(tenant.has_value()) << name;
  return tenant.value_or(v1::TenantInfo());
}

inline CallOutcome Join(RawClient& client, uint64_t session_id) {
  v1::JoinSessionRequest request;
  request.set_session_id(session_id);
  return client.Call(&SessionStub::JoinSession, request);
}

class Trust : public DaemonTest {};

}  // namespace rnicd::test
