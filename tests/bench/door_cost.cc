// What a door costs: descriptors and memory of the daemon, time of its creation and renewal, and of the daemon's start.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/crowd.h"
#include "tests/bench/door_bench.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/raw_client.h"

namespace rnicd::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDoors = 1000;
constexpr int kStarts = 9;

double MillisecondsOf(const std::function<void()>& run) {
  const auto began = Clock::now();
  run();
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

test::DaemonOptions OptionsIn(std::shared_ptr<test::TempDir> directory) {
  return {.flags = {"--provider=soft"}, .directory = std::move(directory)};
}

v1::CreateGrantResponse Create(test::RawClient& client, const v1::CreateGrantRequest& request) {
  const auto created = client.Call(&test::AdminStub::CreateGrant, request);
  if (!created.ok() || (request.door() && created.response.socket_dir().empty())) {
    std::fprintf(stderr, "rnicd_door_bench: no %s: %s\n", request.door() ? "door" : "grant", created.message.c_str());
    std::exit(1);
  }
  return created.response;
}

struct Grants {
  // In the order in which they were created.
  std::vector<uint64_t> ids;
  std::vector<double> milliseconds;
};

void CreateOne(test::RawClient& client, bool door, Grants& grants) {
  v1::CreateGrantRequest request;
  request.set_name((door ? "door-" : "secret-") + std::to_string(grants.ids.size()));
  request.set_door(door);
  grants.milliseconds.push_back(MillisecondsOf([&] { grants.ids.push_back(Create(client, request).grant_id()); }));
}

double RenewalMilliseconds(const test::DaemonProcess& daemon, const std::vector<uint64_t>& ids) {
  test::RawClient client(daemon.admin_socket());
  return MillisecondsOf([&] {
    for (const uint64_t id : ids) {
      v1::CreateGrantRequest request;
      request.set_name("renewed-" + std::to_string(id));
      request.set_door(true);
      request.mutable_renewal()->set_grant_id(id);
      Create(client, request);
    }
  });
}

struct Size {
  double descriptors = 0;
  double kib = 0;
};

// What each grant of one kind adds to the daemon.
Size SizeOfOne(bool door) {
  const auto daemon = Must(test::DaemonProcess::Start({.flags = {"--provider=soft", "--log_level=error"}}));
  test::RawClient client(daemon->admin_socket());
  // The first ones pay for what is made once.
  Grants grants;
  for (int i = 0; i < kDoors / 10; ++i) {
    CreateOne(client, door, grants);
  }
  const v1::GetStatusResponse before = test::AdminStatus(*daemon);
  for (int i = 0; i < kDoors; ++i) {
    CreateOne(client, door, grants);
  }
  const v1::GetStatusResponse after = test::AdminStatus(*daemon);
  return {.descriptors = (static_cast<double>(after.open_fds()) - static_cast<double>(before.open_fds())) / kDoors,
          .kib = (static_cast<double>(after.resident_bytes()) - static_cast<double>(before.resident_bytes())) / 1024 /
                 kDoors};
}

// From the start of the process until it logs that it is ready.
double StartMilliseconds(const std::shared_ptr<test::TempDir>& directory,
                         std::unique_ptr<test::DaemonProcess>& daemon) {
  return MillisecondsOf([&] {
    daemon = Must(test::DaemonProcess::Launch(OptionsIn(directory)));
    if (!daemon->process().errors().WaitFor("ready", test::kTimeout)) {
      std::fprintf(stderr, "rnicd_door_bench: the daemon does not start: %s\n", daemon->log().c_str());
      std::exit(1);
    }
  });
}

}  // namespace

v1::CreateGrantResponse MakeGrant(const test::DaemonProcess& daemon, const std::string& name, bool door) {
  test::RawClient client(daemon.admin_socket());
  v1::CreateGrantRequest request;
  request.set_name(name);
  request.set_door(door);
  return Create(client, request);
}

void PrintCosts() {
  const Size secret = SizeOfOne(false);
  const Size door = SizeOfOne(true);
  const auto directory = std::make_shared<test::TempDir>();
  auto daemon = Must(test::DaemonProcess::Start(OptionsIn(directory)));
  Grants doors;
  Grants secrets;
  {
    test::RawClient client(daemon->admin_socket());
    for (int i = 0; i < kDoors; ++i) {
      CreateOne(client, true, doors);
      CreateOne(client, false, secrets);
    }
  }
  std::vector<double> with;
  std::vector<double> without;
  for (int i = 0; i < kStarts; ++i) {
    daemon->KillHard();
    with.push_back(StartMilliseconds(directory, daemon));
    std::unique_ptr<test::DaemonProcess> other;
    without.push_back(StartMilliseconds(std::make_shared<test::TempDir>(), other));
  }
  const double renewal = RenewalMilliseconds(*daemon, doors.ids);
  std::printf("| %d grants | with a secret | with a door | more |\n|---|---:|---:|---:|\n", kDoors);
  const auto print = [](const char* what, double one, double other) {
    std::printf("| %s | %.3g | %.3g | %.3g |\n", what, one, other, other - one);
  };
  print("descriptors of the daemon, each", secret.descriptors, door.descriptors);
  print("resident KiB of the daemon, each", secret.kib, door.kib);
  print("CreateGrant, p50: ms", Percentile(secrets.milliseconds, 0.5), Percentile(doors.milliseconds, 0.5));
  print("CreateGrant, p99: ms", Percentile(secrets.milliseconds, 0.99), Percentile(doors.milliseconds, 0.99));
  print("start until ready, beside what a killed daemon left of them, p50: ms", Percentile(without, 0.5),
        Percentile(with, 0.5));
  std::printf("| renewal of all, one after the other: ms | | %.0f | |\n", renewal);
}

}  // namespace rnicd::bench
