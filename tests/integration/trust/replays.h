#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "tests/integration/trust_fixture.h"

namespace rnicd::test {

// Makes calls twice and remembers which.
class Replays {
 public:
  // The second call must be refused with this reason.
  template <typename Request, typename Response>
  Response Refused(const std::string& name, RawClient& client, const Rpc<Request, Response>* method,
                   const std::type_identity_t<Request>& request, ErrorReason reason) {
    made_.insert(name);
    const CallResult<Response> first = client.Call(method, request);
    EXPECT_TRUE(first.ok()) << name << ": " << first.message;
    const CallResult<Response> second = client.Call(method, request);
    EXPECT_EQ(static_cast<int>(second.detail.reason()), static_cast<int>(reason)) << name << ": " << second.message;
    return first.response;
  }
  // The second call must succeed like the first.
  template <typename Request, typename Response>
  std::pair<Response, Response> Repeated(const std::string& name, RawClient& client,
                                         const Rpc<Request, Response>* method,
                                         const std::type_identity_t<Request>& request) {
    made_.insert(name);
    const CallResult<Response> first = client.Call(method, request);
    EXPECT_TRUE(first.ok()) << name << ": " << first.message;
    const CallResult<Response> second = client.Call(method, request);
    EXPECT_TRUE(second.ok()) << name << ": " << second.message;
    return {first.response, second.response};
  }
  // The second call must make another object.
  template <typename Request, typename Response>
  Response Another(const std::string& name, RawClient& client, const Rpc<Request, Response>* method,
                   const std::type_identity_t<Request>& request, uint64_t (Response::*id)() const) {
    const auto [first, second] = Repeated(name, client, method, request);
    EXPECT_NE((first.*id)(), 0u) << name;
    EXPECT_NE((first.*id)(), (second.*id)()) << name;
    return first;
  }
  // Each item of the second call must be refused with this reason.
  template <typename Request, typename Response>
  Response ItemsRefused(const std::string& name, RawClient& client, const Rpc<Request, Response>* method,
                        const std::type_identity_t<Request>& request, ErrorReason reason) {
    const auto [first, second] = Repeated(name, client, method, request);
    EXPECT_EQ(first.outcomes_size(), request.items_size()) << name;
    for (const auto& outcome : first.outcomes()) {
      EXPECT_FALSE(outcome.has_error()) << name << ": " << outcome.ShortDebugString();
    }
    EXPECT_EQ(second.outcomes_size(), request.items_size()) << name;
    for (const auto& outcome : second.outcomes()) {
      EXPECT_EQ(static_cast<int>(outcome.error().reason()), static_cast<int>(reason)) << name;
    }
    return first;
  }

  const std::set<std::string>& made() const { return made_; }

 private:
  std::set<std::string> made_;
};

}  // namespace rnicd::test
