// Messages straight into the gate's table: every method, by the bytes of its request, on two connections of a workload,
// one of another user and one of an operator. For every input: each call ends once and never as an internal fault, what
// the check of messages accepts can be parsed, and nothing is left.
//
// Input: calls, one after the other; each is a byte that selects the connection, a byte that selects the method, two
// bytes of length, and so many bytes of a message.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "daemon/gate/gate.h"
#include "daemon/server/message_check.h"
#include "daemon/service/methods.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/fuzz_daemon.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/node.h"

namespace rnicd::fuzz {
namespace {

using google::protobuf::Message;

constexpr size_t kCallsMax = 32;
constexpr uint64_t kPartsMax = 1000;

// Counts how often a call ends; tells a stream at once that it was written.
class CountingEnd final : public gate::ClientEnd {
 public:
  void BeginStream() override {}
  void Write(const Message& message) override {
    // Bounds a stream that always has more to say.
    if (!message.SerializeAsString().empty() && ++written_ < kCallsMax && on_written_ != nullptr) {
      const std::function<void()> on_written = on_written_;  // A copy: the call may end inside.
      on_written();
    }
  }
  void SetOnWritten(std::function<void()> on_written) override { on_written_ = std::move(on_written); }
  // No caller has a rate.
  void CallLater(std::chrono::nanoseconds /*delay*/, std::function<void()> /*task*/) override {
    Check(false, "nothing is delayed");
  }
  void Finish(const absl::Status& status, const Message* response) override {
    ++ends_;
    on_written_ = nullptr;
    Check(status.ok() || absl::IsCancelled(status) || !FailedWith(status, ErrorReason::INTERNAL_FAULT),
          "no call ends as an internal fault");
    Check(response == nullptr || response->IsInitialized(), "a response can be sent");
  }
  int ends() const { return ends_; }

 private:
  size_t written_ = 0;
  int ends_ = 0;
  std::function<void()> on_written_;
};

// The objects that the handlers refer to. New for each input, so that an input has the same effect wherever it comes in
// a run.
struct Served {
  FuzzNode node;
  FakeProcess process{node.tenants, node.soft, node.draining};
  health::HealthBoard health;
};

// The handlers keep no state, only references to a Served, and the index of them costs more than the rest of an input.
// So it is made once, and every Served is at the address of the first.
const std::vector<gate::Method>& MethodsOf(Served& served) {
  static const Served* const first = &served;
  Check(first == &served, "the handlers refer to the objects of this input");
  static const auto* const index =
      new gate::MethodIndex(service::AllMethods(served.node.node, served.node.registry, served.process, served.health));
  return index->methods();
}

// The logger is too slow to start for each input.
gate::GateServices ServicesOf(FuzzNode& node) {
  static const auto* const logger = new log::Logger(log::Options{.level = log::Level::kError});
  return {.observer = node.observer, .logger = *logger, .clock = node.clock};
}

class Methods {
 public:
  explicit Methods(Served& served) : served_(served), node_(served.node) {
    Connect(1, 1000, core::Role::kWorkload);
    Connect(1, 1000, core::Role::kWorkload);
    Connect(2, 2000, core::Role::kWorkload);
    Connect(3, 0, core::Role::kOperator);
    Check(contexts_[0]->OpenSession("fuzz", "").ok(), "a session can be opened");
  }

  void Run(Input& input) {
    for (size_t call = 0; call < kCallsMax && !input.empty(); ++call) {
      const size_t connection = input.Below(contexts_.size());
      const std::vector<gate::Method>& methods = MethodsOf(served_);
      const gate::Method& method = methods[input.Below(methods.size())];
      Make(connection, method, input.Text(input.Short()));
      node_.RunOne();
    }
    for (const auto& call : calls_) {
      if (const auto running = call.lock(); running != nullptr) {
        running->Cancel();
      }
    }
    node_.Settle();
    for (const auto& context : contexts_) {
      context->Disconnected();
    }
    node_.EndAll();
    for (const auto& end : ends_) {
      Check(end->ends() == 1, "each call ends once");
    }
  }

 private:
  void Connect(uint64_t process, uid_t uid, core::Role role) {
    core::Caller caller = FuzzNode::CallerNumbered(process, uid);
    caller.role = role;
    contexts_.push_back(std::make_shared<gate::ConnectionContext>(caller, node_.node, node_.registry));
  }

  static absl::StatusOr<std::unique_ptr<Message>> Read(const gate::Method& method, const std::string& bytes) {
    RNICD_RETURN_IF_ERROR(server::CheckMessage(*method.request->GetDescriptor(), bytes, kPartsMax).status());
    std::unique_ptr<Message> request(method.request->New());
    Check(request->ParseFromString(bytes), "what the check accepts can be parsed");
    return request;
  }

  void Make(size_t connection, const gate::Method& method, const std::string& bytes) {
    ends_.push_back(std::make_shared<CountingEnd>());
    const gate::Gate gate(ServicesOf(node_), contexts_[connection]);
    gate::Gate::Begun begun = gate.Begin(method, ends_.back());
    calls_.push_back(begun.running);
    gate::Gate::Run(std::move(begun.admitted), method, Read(method, bytes));  // No caller has a rate.
  }

  Served& served_;
  FuzzNode& node_;
  std::vector<std::shared_ptr<gate::ConnectionContext>> contexts_;
  std::vector<std::shared_ptr<CountingEnd>> ends_;
  std::vector<std::weak_ptr<gate::Call>> calls_;
};

}  // namespace
}  // namespace rnicd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rnicd::fuzz::Input input(data, size);
  static std::optional<rnicd::fuzz::Served> served;
  rnicd::fuzz::Methods(served.emplace()).Run(input);
  served.reset();
  return 0;
}
