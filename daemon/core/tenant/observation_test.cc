#include "daemon/core/tenant/observation.h"

#include <gtest/gtest.h>

#include <string>

namespace rnicd::core {
namespace {

// Accepts every event, and keeps those it has room for.
struct Kept {
  void Keep(const RpcEnded& rpc) { text = rpc.method; }
  void Keep(const ConnectionRefused& refused) { text = refused.reason; }
  void Keep(const SessionOpened& opened) { text = std::to_string(opened.id.value); }
  void Keep(const SessionEnded& ended) { text = EndCauseName(ended.cause); }
  void Keep(const RegistrationEnded& registration) { text = std::to_string(registration.bytes); }
  void Keep(const DeregistrationEnded& deregistration) { text = std::string(deregistration.status.message()); }
  void Keep(const FastRegisterRefused& /*refused*/) { text = "fast"; }
  void Keep(const WorkRequestCompleted& completed) { text = std::to_string(static_cast<int>(completed.operation)); }
  void Keep(const TokensIssued& issued) { text = std::to_string(issued.local) + "+" + std::to_string(issued.remote); }
  void Keep(const TokensRevoked& revoked) { text = revoked.cause; }
  void Keep(const Decision& decision) { text = decision.what; }

  std::string text;
};

class KeepingObserver final : public Observer {
 public:
  void Observe(const Observation& observation) override {
    observation.Visit([this](const auto& event) { kept_.Keep(event); });
    is_decision_ = observation.As<Decision>() != nullptr;
  }
  template <typename Event>
  std::string After(const Event& event) {
    Report(event);
    return kept_.text;
  }
  bool is_decision() const { return is_decision_; }

 private:
  Kept kept_;
  bool is_decision_ = false;
};

TEST(Observation, AVisitorReceivesEachEventWithItsContent) {
  KeepingObserver observer;
  const Caller caller;
  EXPECT_EQ(observer.After(RpcEnded{.method = "A.B"}), "A.B");
  EXPECT_EQ(observer.After(ConnectionRefused{kRefusedRate}), kRefusedRate);
  EXPECT_EQ(observer.After(SessionOpened{.id = SessionId{7}, .caller = caller}), "7");
  EXPECT_EQ(observer.After(SessionEnded{.id = SessionId{7}, .caller = caller, .cause = EndCause::kEvicted}), "evicted");
  EXPECT_EQ(observer.After(RegistrationEnded{.bytes = 4096}), "4096");
  EXPECT_EQ(observer.After(DeregistrationEnded{absl::InternalError("device")}), "device");
  EXPECT_EQ(observer.After(FastRegisterRefused{}), "fast");
  EXPECT_EQ(observer.After(WorkRequestCompleted{.operation = OperationType::kFastRegister}), "4");
  EXPECT_EQ(observer.After(TokensIssued{.local = 2, .remote = 3}), "2+3");
  EXPECT_EQ(observer.After(TokensRevoked{.pairs = 1, .cause = "close"}), "close");
  EXPECT_EQ(observer.After(Decision{.what = "fd"}), "fd");
}

TEST(Observation, AsFindsTheEventOfItsTypeOnly) {
  KeepingObserver observer;
  observer.Report(Decision{.what = "fd"});
  EXPECT_TRUE(observer.is_decision());
  observer.Report(TokensIssued{.local = 1});
  EXPECT_FALSE(observer.is_decision());
}

}  // namespace
}  // namespace rnicd::core
