#pragma once

#include <cstdint>
#include <string>

#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"

namespace rnicd::test {

// Connections that the tenant of a grant may have.
struct Permissions {
  bool listen = false;
  // Prefixes; empty: none.
  std::string connect;
  std::string accept;
};

inline constexpr char kEveryAddress[] = "::/0";

inline v1::CreateGrantRequest GrantFor(const std::string& name, const Permissions& permissions) {
  v1::CreateGrantRequest request;
  request.set_name(name);
  v1::ConnectionPolicy& connections = *request.mutable_connections();
  if (permissions.listen) {
    connections.add_listen()->set_prefix(kEveryAddress);
  }
  if (!permissions.connect.empty()) {
    connections.add_connect()->set_prefix(permissions.connect);
  }
  if (!permissions.accept.empty()) {
    connections.add_accept()->set_prefix(permissions.accept);
  }
  return request;
}

// A grant that is revoked at the end of the test.
class TestGrant {
 public:
  TestGrant(const DaemonProcess& daemon, const v1::CreateGrantRequest& request) : daemon_(daemon) {
    const auto created = CreateGrant(daemon, request);
    ExpectOk(created);
    grant_ = created.response;
  }
  ~TestGrant() {
    if (!over_) {
      ExpectOk(Revoke());
    }
  }
  TestGrant(const TestGrant&) = delete;
  TestGrant& operator=(const TestGrant&) = delete;

  uint64_t id() const { return grant_.grant_id(); }
  const std::string& secret() const { return grant_.secret(); }
  const std::string& tenant() const { return grant_.tenant(); }
  CallResult<v1::RevokeGrantResponse> Revoke() {
    over_ = true;
    return RevokeGrant(daemon_, id());
  }
  void ExpectOver() { over_ = true; }

 private:
  const DaemonProcess& daemon_;
  v1::CreateGrantResponse grant_;
  bool over_ = false;
};

}  // namespace rnicd::test
