#pragma once

// Shared fixture of the gate's tests: connections on a node, calls that go through the gate without a wire, and a
// recording observer.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/session/core_fixture_test.h"
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

// Records the gate's reports.
// Threads: safe.
class GateObserver final : public core::Observer {
 public:
  struct Rpc {
    std::string method;
    absl::StatusCode code = absl::StatusCode::kOk;
    bool has_duration = false;
  };

  void Observe(const core::Observation& observation) override {
    MutexLock lock(mutex_);
    if (const auto* const rpc = observation.As<core::RpcEnded>(); rpc != nullptr) {
      rpcs_.push_back({std::string(rpc->method), rpc->code, rpc->duration.has_value()});
    } else if (const auto* const decision = observation.As<core::Decision>(); decision != nullptr) {
      Record(*decision);
    }
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
  void Record(const core::Decision& decision) RNICD_REQUIRES(mutex_) {
    decisions_.push_back({.what = std::string(decision.what),
                          .process = decision.caller->process.low,
                          .tenant = std::string(decision.tenant),
                          .workload = decision.workload,
                          .session = decision.session,
                          .object = decision.object,
                          .status = core::Unshared(decision.status),
                          .note = std::string(decision.note)});
  }

  mutable Mutex mutex_;
  std::vector<Rpc> rpcs_ RNICD_GUARDED_BY(mutex_);
  std::vector<Decided> decisions_ RNICD_GUARDED_BY(mutex_);
};

// How a call has ended.
struct Ended {
  absl::StatusCode code = absl::StatusCode::kOk;
  ErrorInfo error;
  std::string message;
  // As on the wire; empty after a failure and for a stream.
  std::string response;
};

// The client's end of a call, which keeps how that ended.
class FakeEnd final : public ClientEnd {
 public:
  void BeginStream() override {}
  void Write(const Message& message) override {
    MutexLock lock(mutex_);
    written_.push_back(message.SerializeAsString());
  }
  void SetOnWritten(std::function<void()> on_written) override { on_written_ = std::move(on_written); }
  void CallLater(std::chrono::nanoseconds delay, std::function<void()> task) override {
    delay_ = delay;
    later_ = std::move(task);
  }
  void Finish(const absl::Status& status, const Message* response) override {
    // They keep the call or the stream alive, which keeps this alive.
    later_ = nullptr;
    on_written_ = nullptr;
    ended_.Set({.code = status.code(),
                .error = status.ok() ? ErrorInfo{} : ErrorInfoOf(status),
                .message = std::string(status.message()),
                .response = response == nullptr ? "" : response->SerializeAsString()});
  }
  // Lets a delay pass. Empty when the call does not end in time.
  std::optional<Ended> Get() {
    if (const auto later = std::exchange(later_, nullptr); later != nullptr) {
      later();
    }
    return ended_.Get();
  }
  std::optional<absl::StatusCode> Code() {
    const std::optional<Ended> ended = Get();
    return ended.has_value() ? std::optional(ended->code) : std::nullopt;
  }
  int times() const { return ended_.times(); }
  // Delay before the call ends.
  std::chrono::nanoseconds delay() const { return delay_; }
  // The messages of a stream, until now.
  std::vector<std::string> written() const {
    MutexLock lock(mutex_);
    return written_;
  }
  // The message of a stream that was written last is on its way.
  void LetGo() {
    if (const auto on_written = on_written_; on_written != nullptr) {
      on_written();
    }
  }

 private:
  std::chrono::nanoseconds delay_{0};
  std::function<void()> later_;
  std::function<void()> on_written_;
  core::Awaited<Ended> ended_;
  mutable Mutex mutex_;
  std::vector<std::string> written_ RNICD_GUARDED_BY(mutex_);
};

class GateTest : public ::testing::Test {
 protected:
  explicit GateTest(const core::WorldOptions& options = {}) : world_(options) {}

  std::shared_ptr<ConnectionContext> Connect(uint64_t process = 1, core::Role role = core::Role::kWorkload,
                                             uint32_t uid = 1000) {
    core::Caller caller = core::CallerNumbered(process, uid);
    caller.role = role;
    return std::make_shared<ConnectionContext>(caller, world_.node, world_.registry);
  }

  // A method of `row` that leaves its calls to `take`.
  static Method Taken(const core::Operation& row, std::function<void(const std::shared_ptr<Call>&)> take) {
    return {.row = &row,
            .shape = Call::Shape::kStream,
            .handler = [take = std::move(take)](const std::shared_ptr<Call>& call, const core::SessionGuard*,
                                                const Method::Message*, Method::Message*) { take(call); }};
  }

  // A method of `row` that succeeds at once.
  static Method Ended(const core::Operation& row) {
    return Taken(row, [](const std::shared_ptr<Call>& call) { call->Finish(absl::OkStatus()); });
  }

  // Runs a call as the wire does, with what `read` returns unless the call is above its rate.
  template <typename Read>
  std::shared_ptr<Call> RunRead(const std::shared_ptr<ConnectionContext>& connection, const Method& method,
                                const Read& read, std::shared_ptr<ClientEnd> end) const {
    const Gate::Begun begun = Gate(services_, connection).Begin(method, std::move(end));
    if (begun.admitted != nullptr) {
      Gate::Run(begun.admitted, method, read());
    }
    return begun.running.lock();
  }

  // Runs a call with a copy of `request`; returns its client's end, and the call itself in `begun`.
  std::shared_ptr<FakeEnd> Run(const std::shared_ptr<ConnectionContext>& connection, const Method& method,
                               const google::protobuf::Message* request = nullptr,
                               std::shared_ptr<Call>* begun = nullptr) {
    auto end = std::make_shared<FakeEnd>();
    std::unique_ptr<google::protobuf::Message> copy(request == nullptr ? nullptr : request->New());
    if (request != nullptr) {
      copy->CopyFrom(*request);
    }
    std::shared_ptr<Call> call = RunRead(connection, method, [&] { return std::move(copy); }, end);
    if (begun != nullptr) {
      *begun = std::move(call);
    }
    return end;
  }

  // Calls `row` on the connection and returns the code of its refusal, however late, or that of `outcome`, with which
  // its handler ends it.
  absl::StatusCode Try(const std::shared_ptr<ConnectionContext>& connection, const core::Operation& row,
                       const google::protobuf::Message* request = nullptr,
                       const absl::Status& outcome = absl::OkStatus()) {
    const Method method = Taken(row, [&](const std::shared_ptr<Call>& call) { call->Finish(outcome); });
    return Run(connection, method, request)->Code().value_or(absl::StatusCode::kUnknown);
  }

  // A call that was admitted and runs until it is finished or dropped.
  std::shared_ptr<Call> NewCall(const std::shared_ptr<ConnectionContext>& connection,
                                const core::Operation& row = core::Row("AdapterService.ListAdapters")) {
    std::shared_ptr<Call> admitted;
    Run(connection, Taken(row, [&](const std::shared_ptr<Call>& call) { admitted = call; }));
    return admitted;
  }

  core::World world_;
  GateObserver observer_;
  const log::Logger logger_{{.level = log::Level::kError}};
  const GateServices services_{observer_, logger_, world_.clock};
};

}  // namespace rnicd::gate
