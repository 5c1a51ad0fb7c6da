#pragma once

// Shared fixture of the gate's tests: connections on a node, calls that go through the gate without gRPC, and a
// recording observer.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/core_fixture_test.h"
#include "daemon/gate/gate.h"

namespace rnicd::gate {

// A copy of a decision.
struct Decided {
  std::string what;
  uint64_t process = 0;
  std::string tenant;
  std::shared_ptr<const core::Workload> workload;
  SessionId session;
  std::string object;
  absl::Status status;
  std::string note;
};

// Records the gate's reports. Threads: safe.
class GateObserver final : public core::Observer {
 public:
  struct Rpc {
    std::string method;
    absl::StatusCode code = absl::StatusCode::kOk;
    bool has_duration = false;
  };

  void OnRpc(std::string_view method, absl::StatusCode code,
             std::optional<std::chrono::nanoseconds> duration) override {
    MutexLock lock(mutex_);
    rpcs_.push_back({std::string(method), code, duration.has_value()});
  }
  void OnDecision(const core::Decision& decision) override {
    MutexLock lock(mutex_);
    decisions_.push_back({.what = std::string(decision.what),
                          .process = decision.caller->process.low,
                          .tenant = std::string(decision.tenant),
                          .workload = decision.workload,
                          .session = decision.session,
                          .object = decision.object,
                          .status = core::Unshared(decision.status),
                          .note = std::string(decision.note)});
  }
  std::vector<Rpc> rpcs() const {
    MutexLock lock(mutex_);
    return rpcs_;
  }
  std::vector<Decided> decisions() const {
    MutexLock lock(mutex_);
    return decisions_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<Rpc> rpcs_ RNICD_GUARDED_BY(mutex_);
  std::vector<Decided> decisions_ RNICD_GUARDED_BY(mutex_);
};

// Replaces gRPC's end of a stream that is refused.
class RefusedReactor {
 public:
  void Finish(const grpc::Status& status) { code_.Set(status.error_code()); }
  // Empty when the call does not end in time.
  std::optional<grpc::StatusCode> Code() { return code_.Get(); }
  int times() const { return code_.times(); }

 private:
  core::Awaited<grpc::StatusCode> code_;
};

class GateTest : public ::testing::Test {
 protected:
  explicit GateTest(const core::WorldOptions& options = {}) : world_(options) {}

  std::shared_ptr<ConnectionContext> Connect(uint64_t process = 1, core::Role role = core::Role::kWorkload,
                                             uid_t uid = 1000) {
    core::Caller caller = core::CallerNumbered(process, uid);
    caller.role = role;
    return std::make_shared<ConnectionContext>(caller, world_.node, world_.registry);
  }

  // Calls `row` on the connection and returns the code of its refusal, however late, or that of `outcome`, with which
  // its handler ends it.
  grpc::StatusCode Try(const std::shared_ptr<ConnectionContext>& connection, const MethodRow& row,
                       const google::protobuf::Message* request = nullptr,
                       const absl::Status& outcome = absl::OkStatus()) {
    const auto refused = std::make_shared<RefusedReactor>();
    RefusedReactor* const reactor = Gate(services_, connection)
                                        .Stream(
                                            row, request,
                                            [&](const std::shared_ptr<Call>& call) -> RefusedReactor* {
                                              call->Finish(outcome);
                                              return nullptr;
                                            },
                                            [&](const std::shared_ptr<Call>&) { return refused.get(); });
    return reactor == nullptr ? static_cast<grpc::StatusCode>(outcome.code())
                              : reactor->Code().value_or(grpc::StatusCode::UNKNOWN);
  }

  // A call that was admitted and runs until it is finished or dropped.
  std::shared_ptr<Call> NewCall(const std::shared_ptr<ConnectionContext>& connection,
                                const MethodRow& row = Row("AdapterService.ListAdapters")) {
    std::shared_ptr<Call> admitted;
    RefusedReactor refused;
    Gate(services_, connection)
        .Stream(
            row, nullptr,
            [&](const std::shared_ptr<Call>& call) -> RefusedReactor* {
              admitted = call;
              return nullptr;
            },
            [&](const std::shared_ptr<Call>&) { return &refused; });
    return admitted;
  }

  core::World world_;
  GateObserver observer_;
  const log::Logger logger_{{.level = log::Level::kError}};
  // Last, so that it is destroyed before the objects its responses use.
  std::optional<DelayedResponses> delayed_responses_{std::in_place};
  const GateServices services_{observer_, logger_, world_.clock, *delayed_responses_};
};

}  // namespace rnicd::gate
