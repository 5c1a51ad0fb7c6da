#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "client/cpp/client.h"
#include "client/cpp/memory.h"
#include "tests/support/shared_daemon.h"

// What the librnicd_*_test.cc files share: the C++ library against the real daemon.
namespace rnicd::test {

inline constexpr uint64_t kClientPage = 4096;
// For what must not come: whatever was to come before it is here already.
inline constexpr std::chrono::milliseconds kAtOnce{1};

// The value; the end of the program, after a test failure, when there is none.
template <typename Value>
Value Must(absl::StatusOr<Value> value) {
  if (!value.ok()) {
    ADD_FAILURE() << value.status();
    std::abort();
  }
  return *std::move(value);
}

// What the client's session uses of one resource.
inline uint64_t UsedBy(const Client& client, const std::string& resource) {
  for (const ResourceUse& use : Must(client.GetSession()).resources) {
    if (use.name == resource) {
      return use.used;
    }
  }
  ADD_FAILURE() << "no resource " << resource;
  return 0;
}

class Librnicd : public DaemonTest {
 protected:
  explicit Librnicd(const std::vector<std::string>& flags = {}) : DaemonTest(flags) {}

  absl::StatusOr<Client> Connect(ClientOptions options = {.label = "librnicd"}) {
    options.socket_dir = daemon().socket_dir();
    return Client::Connect(std::move(options));
  }
  Client MustConnect(ClientOptions options = {.label = "librnicd"}) { return Must(Connect(std::move(options))); }
  static Memory MustAllocate(const Client& client, uint64_t size) {
    return Must(Memory::Allocate(client, {.size = size}));
  }
};

}  // namespace rnicd::test
