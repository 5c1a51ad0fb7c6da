#include "tests/fuzz/fuzz_daemon.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "base/system/unique_socket.h"
#include "daemon/audit/audit_line.h"
#include "daemon/rpc/bounds/limits.h"
#include "daemon/service/methods.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/node.h"

namespace rnicd::fuzz {
namespace {

using core::Resource;

constexpr std::chrono::seconds kStartTimeout{20};
constexpr uid_t kPluginUid = 2000;
constexpr uid_t kPolicyUid = 3000;

// High enough for every kind of object, and low enough that no operation takes long.
core::NodeLimits Limits() {
  core::NodeLimits limits;
  limits.node[Resource::kMemoryBytes] = uint64_t{4} << 20;
  limits.node[Resource::kRegisteredBytes] = uint64_t{256} << 20;
  limits.node[Resource::kQueueEntries] = 65536;
  limits.node[Resource::kFastRegisterPages] = 65536;
  limits.node[Resource::kPostedPages] = 65536;
  limits.session[Resource::kRegions] = 4096;
  limits.session[Resource::kPendingRequests] = 4;
  // Low enough that some requests run on a worker, and pend where allowed.
  limits.pending_threshold_bytes = 4 * kNdkPageBytes;
  return limits;
}

core::Policy PolicyOfTest() {
  core::Policy policy = core::OneTenantForEachUid(core::Limits());
  policy.roles.push_back({.match = {.uid = kPluginUid}, .role = core::Role::kDevicePlugin});
  return policy;
}

core::Caller CallerOf(char name) {
  switch (name) {
    case 'c':
      return FuzzNode::CallerNumbered(2, kPolicyUid);
    case 'o':
      return {.process = {.high = 7, .low = 3}, .uid = 0, .gid = 0, .role = core::Role::kOperator};
    case 'p':
      return {.process = {.high = 7, .low = 4}, .uid = kPluginUid, .gid = 0, .role = core::Role::kDevicePlugin};
    default:
      return FuzzNode::CallerNumbered(1);
  }
}

}  // namespace

void DecisionRecorder::Observe(const core::Observation& observation) {
  const auto* const decision = observation.As<core::Decision>();
  if (decision == nullptr) {
    return;
  }
  std::string line = audit::Format(audit::LineOf(*decision, WallTime()));
  MutexLock lock(mutex_);
  lines_.push_back(std::move(line));
}

void DecisionRecorder::CheckLines(const std::vector<std::string>& secrets) const {
  MutexLock lock(mutex_);
  for (const std::string& line : lines_) {
    Check(line.find('\n') == line.size() - 1, "a decision is one line");
    Check(nlohmann::json::accept(line), "a line is JSON: " + line);
    for (const std::string& secret : secrets) {
      Check(line.find(secret) == std::string::npos, "no line holds a secret");
    }
  }
}

absl::StatusOr<std::string> FakeProcess::SetLogLevel(std::string_view level) {
  if (!log::LevelFromName(level).has_value()) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "level");
  }
  return std::string(level);
}

absl::Status FakeProcess::ReloadPolicy() {
  tenants_.SetPolicy(PolicyOfTest());
  return absl::OkStatus();
}

bool FakeProcess::SetDraining(bool draining) {
  draining_.store(draining);
  return draining;
}

FuzzDaemon::FuzzDaemon()
    // A refusal is not logged at this level; an internal error is.
    : logger_(log::Options{.level = log::Level::kError}),
      soft_(provider::SoftOptions{.adapters = 2}, random_),
      wired_({.os = os_,
              .clock = clock_,
              .random = random_,
              .provider = soft_,
              .observer = observer_,
              .workers = workers_,
              .reapers = reapers_,
              .limits = Limits(),
              .policy = PolicyOfTest()}),
      rings_(*rings::RingThreads::Start(1, steady_clock_, {.percent = 0})),
      process_(wired_.tenants, soft_, wired_.draining) {
  wired_.node.rings = rings_.get();
  const gate::GateServices services = {.observer = observer_, .logger = logger_, .clock = steady_clock_};
  auto server = server::RpcConnectionServer::Start(2, rpc::Limits{}, services,
                                                   service::AllMethods(wired_.node, wired_.registry, process_, health_),
                                                   wired_.node, wired_.registry);
  Check(server.ok(), "the server starts");
  server_ = *std::move(server);
}

std::unique_ptr<door::ServedConnection> FuzzDaemon::Serve(char name, UniqueFd& client) {
  std::array<int, 2> ends{};
  Check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0,
        "a socket pair can be created");
  client.Reset(ends[0]);
  auto connection = server_->Serve({.socket = std::make_shared<const UniqueSocket>(ends[1]),
                                    .caller = CallerOf(name),
                                    .refuses_descriptors = false,
                                    .secret = std::nullopt,
                                    .on_end = {}});
  Check(connection != nullptr, "a connection is served");
  return connection;
}

// As the front door does on each tick. Also changes the health, so that health streams have changes to report.
void FuzzDaemon::Advance(std::chrono::milliseconds by) {
  health_.SetCards(!health_.ready());
  clock_.Advance(by);
  wired_.registry.EndExpired();
}

void FuzzDaemon::CheckNothingLeft(const std::vector<std::string>& secrets) {
  Check(wired_.registry.WaitUntilEmpty(std::chrono::steady_clock::now() + kStartTimeout), "every session ends");
  // What clients had mapped until now.
  wired_.lingering.Sweep();
  CheckNothingHeld(wired_.node, os_);
  observer_.CheckLines(secrets);
}

}  // namespace rnicd::fuzz
