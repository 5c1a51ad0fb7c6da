#pragma once

// Shared fixture of the service's tests: every method of the daemon, called with the bytes of a request through the
// gate as the wire's dispatcher does it, by clients of a node on the software card.

#include <google/protobuf/text_format.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "daemon/core/connection/connection_fixture_test.h"
#include "daemon/core/ring/ring_host.h"
#include "daemon/gate/gate_fixture_test.h"
#include "daemon/health/health_board.h"
#include "daemon/service/methods.h"

namespace rnicd::service {

// A daemon process about which nothing changes but what operators ask for.
class QuietProcess final : public ProcessControl {
 public:
  std::string version() const override { return "1.2.3"; }
  uint32_t generation() const override { return 2; }
  void OnGrantNarrowed(GrantId /*grant*/, const std::string& /*pod_uid*/) override {}
  std::string metrics_address() const override { return "127.0.0.1:9747"; }
  uint64_t connections() const override { return 3; }
  core::Doors* doors() const override { return doors_given; }
  uint64_t device_regions() const override { return 5; }
  std::vector<health::AdapterHealth> adapters() const override { return {}; }
  std::string policy_file() const override { return "policy.textproto"; }
  absl::StatusOr<std::string> SetLogLevel(std::string_view level) override {
    return level == "debug" ? absl::StatusOr<std::string>("info") : MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "level");
  }
  absl::Status ReloadPolicy() override { return reloaded; }
  bool SetDraining(bool draining) override { return draining; }

  absl::Status reloaded;
  core::Doors* doors_given = nullptr;
};

// Serves rings, but never takes an entry.
class IdleRings final : public core::RingHost {
 public:
  void Attach(std::shared_ptr<core::Ring> /*ring*/) override {}
  void Detach(const std::shared_ptr<core::Ring>& /*ring*/, std::function<void()> done) override { done(); }
  core::RingCounts Counts() const override { return {}; }
};

// A client with objects of each kind, and a connection that carries its session. The ids have names in the texts of
// requests, "mr_id: $mr"; those that begin with "spare" have no children and no other use.
class Household {
 public:
  Household(core::World& world, uint64_t process) : process_(process), owner(world, process) {
    connection = std::make_shared<gate::ConnectionContext>(core::CallerNumbered(process), world.node, world.registry);
    EXPECT_TRUE(connection->JoinSession(owner.session->id()).ok());
    Name("session", owner.session->id());
    Name("spare_adapter", owner.Adapter());
    Name("adapter", owner.adapter);
    Name("spare_pd", owner.Domain(owner.adapter));
    Name("pd", owner.domain);
    names_["$name"] = "name-" + std::to_string(process);
    AddMemory();
    AddConnections();
    AddQueues();
    const auto grant = world.tenants.CreateGrant({.name = "grant-" + std::to_string(process)});
    EXPECT_TRUE(grant.ok()) << grant.status();
    Name("grant", grant->id);
    names_["$secret"] = grant->secret;
  }

  // The text with the ids in place of their names.
  std::string Text(std::string_view text) const { return Text(text, {}); }
  // The same, with another value for some of the names.
  std::string Text(std::string_view text, const std::map<std::string, std::string>& others) const {
    std::map<std::string, std::string> names = others;
    names.insert(names_.begin(), names_.end());
    return absl::StrReplaceAll(std::string(text), names);
  }
  // Value of a name: "$mr".
  const std::string& operator[](const std::string& name) const { return names_.at(name); }
  const std::map<std::string, std::string>& names() const { return names_; }
  uint64_t process() const { return process_; }

 private:
  template <typename Id>
  Id Name(const std::string& name, Id id) {
    names_["$" + name] = std::to_string(id.value);
    return id;
  }

  void AddMemory() {
    const auto allocated = owner.TryAllocate({.size = core::kPage});
    EXPECT_TRUE(allocated.ok()) << allocated.status();
    const MemoryObjectId fetched = Name("fetched", allocated->memory);
    EXPECT_TRUE((*owner.session->Begin()->memory().Find(fetched))->DuplicateFile().ok());
    const MemoryObjectId memory = Name("memory", owner.Memory(4));
    Name("spare_memory", owner.Memory(1));
    const core::BuiltLam lam = owner.Lam(memory, 1);
    Name("lam", lam.id);
    names_["$page"] = std::to_string(lam.first.value);
    Name("mr", owner.Region(owner.domain));
    Name("registered", owner.RegisteredRegion());
    Name("fast", owner.NewFastRegion());
    Name("initialized", owner.FastRegion());
  }

  // Connectors in the states of the passive side and, to another connector of the same session, of the active side.
  void AddConnections() {
    Name("listener", owner.Listen(names_["$name"]));
    Name("spare_listener", owner.NewListener());
    const auto endpoint = owner.session->Begin()->endpoints().Create(owner.adapter, {});
    EXPECT_TRUE(endpoint.ok()) << endpoint.status();
    Name("endpoint", endpoint->id);
    Name("idle", owner.NewConnector());
    Name("idle_qp", owner.Pair());
    Connect(Name("waiting", owner.NewConnector()));
    Name("requested", owner.WaitRequest());
    const auto answered = Connect(Name("answered", owner.NewConnector()));
    owner.StartAccept(owner.WaitRequest(), owner.Pair());
    EXPECT_TRUE(Result(answered).ok());
    const ConnectorId linked = Name("linked", owner.NewConnector());
    const auto linking = Connect(linked);
    const auto accepting = owner.StartAccept(owner.WaitRequest(), owner.Pair());
    EXPECT_TRUE(Result(linking).ok());
    EXPECT_TRUE(Result(owner.StartComplete(linked)).ok());
    EXPECT_TRUE(Result(accepting).ok());
  }
  std::shared_ptr<core::Awaited<absl::Status>> Connect(ConnectorId connector) {
    return owner.StartConnect(owner.To(owner.listening_at, connector, owner.Pair()));
  }

  // The completion queue has a completion, and has notified of it.
  void AddQueues() {
    Name("cq", owner.queue);
    Name("spare_cq", owner.Queue());
    const QueuePairId pair = Name("qp", owner.Pair());
    names_["$address"] = absl::CEscape(owner.Address(pair));
    const QueuePairId connected = Name("connected", owner.Pair());
    EXPECT_TRUE(owner.session->Begin()->pairs().Connect(connected, owner.Address(connected)).ok());
    const MemoryWindowId window = Name("mw", owner.Window());
    Name("spare_mw", owner.Window());
    EXPECT_TRUE(owner.session->Begin()->queues().Arm(owner.queue, CqNotifyType::kAny).ok());
    owner.MustPost(connected, {core::Bind(Name("bound", owner.RegisteredRegion()), window)});
    const auto ring = owner.session->Begin()->rings().Open(0, 0);
    EXPECT_TRUE(ring.ok()) << ring.status();
    Name("ring", ring->ring);
  }

  const uint64_t process_;
  std::map<std::string, std::string> names_;

 public:
  core::ConnectionOwner owner;
  std::shared_ptr<gate::ConnectionContext> connection;
};

class ServiceTest : public gate::GateTest {
 protected:
  using Message = google::protobuf::Message;

  explicit ServiceTest(const core::WorldOptions& options = {}) : GateTest(options) { world_.node.rings = &rings_; }
  ~ServiceTest() override { world_.Stop(); }

  // "/rnicd.v1.MemoryService/CreateMr" for "MemoryService.CreateMr".
  static std::string PathOf(std::string_view method) {
    const std::string_view package = method.starts_with("Health.") ? "/grpc.health.v1." : "/rnicd.v1.";
    return std::string(package) + absl::StrReplaceAll(std::string(method), {{".", "/"}});
  }
  const gate::Method& MethodNamed(std::string_view name) const { return methods_.Find(PathOf(name)); }
  // The request of a method, from its text.
  std::unique_ptr<Message> RequestOf(std::string_view method, const std::string& text) const {
    std::unique_ptr<Message> request(MethodNamed(method).request->New());
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, request.get())) << text;
    return request;
  }

  // Begins a call with the bytes of the request.
  std::shared_ptr<gate::FakeEnd> Begin(const std::shared_ptr<gate::ConnectionContext>& connection,
                                       std::string_view method, const Message& request,
                                       std::shared_ptr<gate::Call>* begun = nullptr) {
    const gate::Method& found = MethodNamed(method);
    const std::string bytes = request.SerializeAsString();
    const auto read = [&]() -> absl::StatusOr<std::unique_ptr<Message>> {
      std::unique_ptr<Message> message(found.request->New());
      EXPECT_TRUE(message->ParseFromString(bytes));
      return message;
    };
    auto end = std::make_shared<gate::FakeEnd>();
    std::shared_ptr<gate::Call> call = RunRead(connection, found, read, end);
    if (begun != nullptr) {
      *begun = std::move(call);
    }
    return end;
  }
  gate::Ended Ask(const std::shared_ptr<gate::ConnectionContext>& connection, std::string_view method,
                  const Message& request) {
    const std::optional<gate::Ended> ended = Begin(connection, method, request)->Get();
    EXPECT_TRUE(ended.has_value()) << method << " was never answered";
    return ended.value_or(gate::Ended{});
  }
  gate::Ended Ask(const std::shared_ptr<gate::ConnectionContext>& connection, std::string_view method,
                  const std::string& text) {
    return Ask(connection, method, *RequestOf(method, text));
  }
  gate::Ended Ask(const Household& caller, std::string_view method, std::string_view text) {
    return Ask(caller.connection, method, caller.Text(text));
  }
  // The response to a call that must succeed.
  template <typename Response, typename Caller>
  Response Must(const Caller& caller, std::string_view method, std::string_view text = "") {
    const gate::Ended ended = Ask(caller, method, std::string(text));
    EXPECT_EQ(ended.code, absl::StatusCode::kOk) << method << ": " << ReasonAndField(ended.error);
    Response response;
    EXPECT_TRUE(response.ParseFromString(ended.response));
    return response;
  }

  static std::string ReasonAndField(const ErrorInfo& error) {
    return error.reason == ErrorReason::UNSPECIFIED ? "ok"
                                                    : std::string(RowOf(error.reason).name) + " of " + error.field;
  }
  static void ExpectRefusal(const gate::Ended& ended, ErrorReason reason, const std::string& field) {
    EXPECT_EQ(ReasonAndField(ended.error), ReasonAndField({.reason = reason, .field = field}));
  }
  std::shared_ptr<gate::ConnectionContext> Operator() { return Connect(100'000, core::Role::kOperator, 0); }

  IdleRings rings_;
  QuietProcess process_;
  health::HealthBoard health_;
  const gate::MethodIndex methods_ = AllMethods(world_.node, world_.registry, process_, health_);
};

}  // namespace rnicd::service
