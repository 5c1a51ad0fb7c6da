#include "tests/simulation/world/witness.h"

#include <utility>

#include "base/status.h"

namespace rnicd::simulation {
namespace {

using provider::DeviceAdapter;
using provider::DeviceCompletionQueue;
using provider::DeviceFastRegion;
using provider::DeviceMemoryRegion;
using provider::DeviceMemoryWindow;
using provider::DeviceProtectionDomain;
using provider::DeviceQueuePair;
using provider::DeviceRegistration;
using provider::QueuePairLimits;
using provider::QueuePairListener;
using provider::WorkQueue;

// Number of occasions to skip before planting a bug, so that the world is busy by then.
constexpr uint64_t kOccasionsBefore = 20;

// Counts one object for its lifetime.
class Counted {
 public:
  explicit Counted(uint64_t& count) : count_(count) { ++count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --count_; }

 private:
  uint64_t& count_;
};

class WitnessRegion final : public DeviceMemoryRegion {
 public:
  WitnessRegion(std::shared_ptr<DeviceMemoryRegion> inner, Witness& witness)
      : inner_(std::move(inner)), witness_(witness) {}

  const std::shared_ptr<DeviceMemoryRegion>& inner() const { return inner_; }

  LocalToken local_token() const override { return inner_->local_token(); }
  RemoteToken remote_token() const override { return inner_->remote_token(); }
  absl::Status Deregister() override {
    if (witness_.Plants(Canary::kTokenOutlivesRegion)) {
      witness_.kept.push_back(inner_);
      return absl::OkStatus();
    }
    return inner_->Deregister();
  }

 private:
  const std::shared_ptr<DeviceMemoryRegion> inner_;
  Witness& witness_;
};

// Records what a queue pair reports and passes it on to its listener.
class Tap final : public QueuePairListener {
 public:
  Tap(QueuePairListener& inner, Witness& witness, uint64_t number)
      : inner_(inner), witness_(witness), number_(number) {}

  void OnCompletion(WorkQueue queue, const provider::Completion& completion) override {
    CheckOpen();
    if (witness_.Plants(Canary::kCompletionLost)) {
      return;
    }
    Pass(queue, completion);
    if (witness_.Plants(Canary::kCompletionTwice)) {
      Pass(queue, completion);
    }
  }
  void OnPeerDisconnected() override {
    CheckOpen();
    witness_.peers_gone.push_back(number_);
    inner_.OnPeerDisconnected();
  }
  void Shut() { shut_ = true; }

 private:
  void Pass(WorkQueue queue, const provider::Completion& completion) {
    witness_.completions.push_back({.pair = number_, .queue = queue, .completion = completion});
    inner_.OnCompletion(queue, completion);
  }
  void CheckOpen() {
    if (shut_) {
      witness_.late.push_back("queue pair " + std::to_string(number_));
    }
  }

  QueuePairListener& inner_;
  Witness& witness_;
  const uint64_t number_;
  bool shut_ = false;
};

class WitnessQueuePair final : public DeviceQueuePair {
 public:
  WitnessQueuePair(std::unique_ptr<Tap> tap, std::unique_ptr<DeviceQueuePair> inner, Witness& witness)
      : counted_(witness.living.queue_pairs), tap_(std::move(tap)), inner_(std::move(inner)), witness_(witness) {}

  provider::QueuePairState state() const override { return inner_->state(); }
  std::string address() const override { return inner_->address(); }
  absl::Status Connect(std::string_view peer_address) override { return inner_->Connect(peer_address); }
  absl::StatusOr<RemoteToken> Enqueue(provider::WorkRequest&& request) override {
    if (auto* bind = std::get_if<provider::BindWork>(&request.work)) {
      bind->region = static_cast<const WitnessRegion&>(*bind->region).inner();  // The card knows only its own.
    }
    const auto* fast = std::get_if<provider::FastRegisterWork>(&request.work);
    if (fast != nullptr && witness_.Plants(Canary::kPagesKept)) {
      witness_.kept.push_back(fast->backing);
    }
    absl::StatusOr<RemoteToken> token = inner_->Enqueue(std::move(request));
    if (token.ok() && token->value != 0) {
      witness_.issued.push_back(*token);
    }
    return token;
  }
  void EnqueueRefused(const provider::Completion& refusal) override {
    if (witness_.Plants(Canary::kRefusalAtOnce)) {
      const bool receive = refusal.type == OperationType::kReceive;
      return tap_->OnCompletion(receive ? WorkQueue::kReceive : WorkQueue::kInitiator, refusal);
    }
    inner_->EnqueueRefused(refusal);
  }
  void Kick() override { inner_->Kick(); }
  void Flush() override { inner_->Flush(); }
  void Disconnect() override { inner_->Disconnect(); }
  void Shutdown() override {
    inner_->Shutdown();
    tap_->Shut();
  }

 private:
  const Counted counted_;
  const std::unique_ptr<Tap> tap_;
  const std::unique_ptr<DeviceQueuePair> inner_;
  Witness& witness_;
};

class WitnessCompletionQueue final : public DeviceCompletionQueue {
 public:
  WitnessCompletionQueue(std::unique_ptr<DeviceCompletionQueue> inner, Witness& witness)
      : counted_(witness.living.completion_queues), inner_(std::move(inner)) {}

  DeviceCompletionQueue& inner() { return *inner_; }
  absl::Status Resize(uint32_t depth) override { return inner_->Resize(depth); }

 private:
  const Counted counted_;
  const std::unique_ptr<DeviceCompletionQueue> inner_;
};

class WitnessDomain final : public DeviceProtectionDomain {
 public:
  WitnessDomain(std::unique_ptr<DeviceProtectionDomain> inner, Witness& witness)
      : counted_(witness.living.domains), inner_(std::move(inner)), witness_(witness) {}

  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterMemory(const DeviceRegistration& registration) override {
    RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemoryRegion> region, inner_->RegisterMemory(registration));
    witness_.keys.push_back({.local = region->local_token(), .remote = region->remote_token()});
    if (witness_.Plants(Canary::kStrayByte)) {
      registration.runs.front().front() ^= std::byte{1};
    }
    return std::make_unique<WitnessRegion>(std::move(region), witness_);
  }
  LocalToken privileged_token() const override { return inner_->privileged_token(); }
  absl::StatusOr<std::shared_ptr<DeviceFastRegion>> CreateFastRegion(uint32_t max_pages, bool remote_access) override {
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<DeviceFastRegion> region,
                           inner_->CreateFastRegion(max_pages, remote_access));
    witness_.keys.push_back({.local = region->local_token(), .remote = region->remote_token()});
    return region;
  }
  absl::StatusOr<std::shared_ptr<DeviceMemoryWindow>> CreateMemoryWindow() override {
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemoryWindow> window, inner_->CreateMemoryWindow());
    witness_.keys.push_back({.local = {}, .remote = window->remote_token()});
    return window;
  }
  absl::StatusOr<std::unique_ptr<DeviceQueuePair>> CreateQueuePair(const QueuePairLimits& limits,
                                                                   DeviceCompletionQueue& receive_queue,
                                                                   DeviceCompletionQueue& initiator_queue,
                                                                   QueuePairListener& listener) override {
    auto tap = std::make_unique<Tap>(listener, witness_, witness_.pairs_made + 1);
    RNICD_ASSIGN_OR_RETURN(
        std::unique_ptr<DeviceQueuePair> pair,
        inner_->CreateQueuePair(limits, static_cast<WitnessCompletionQueue&>(receive_queue).inner(),
                                static_cast<WitnessCompletionQueue&>(initiator_queue).inner(), *tap));
    ++witness_.pairs_made;
    return std::make_unique<WitnessQueuePair>(std::move(tap), std::move(pair), witness_);
  }

 private:
  const Counted counted_;
  const std::unique_ptr<DeviceProtectionDomain> inner_;
  Witness& witness_;
};

class WitnessAdapter final : public DeviceAdapter {
 public:
  WitnessAdapter(std::unique_ptr<DeviceAdapter> inner, Witness& witness)
      : counted_(witness.living.adapters), inner_(std::move(inner)), witness_(witness) {}

  const NdkAdapterInfo& info() const override { return inner_->info(); }
  bool removed() const override { return inner_->removed(); }
  absl::StatusOr<IpAddress> LocateQueuePair(std::string_view peer_address) const override {
    return inner_->LocateQueuePair(peer_address);
  }
  absl::StatusOr<std::unique_ptr<DeviceProtectionDomain>> CreateProtectionDomain() override {
    RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceProtectionDomain> domain, inner_->CreateProtectionDomain());
    return std::make_unique<WitnessDomain>(std::move(domain), witness_);
  }
  absl::StatusOr<std::unique_ptr<DeviceCompletionQueue>> CreateCompletionQueue(uint32_t depth) override {
    RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceCompletionQueue> queue, inner_->CreateCompletionQueue(depth));
    return std::make_unique<WitnessCompletionQueue>(std::move(queue), witness_);
  }

 private:
  const Counted counted_;
  const std::unique_ptr<DeviceAdapter> inner_;
  Witness& witness_;
};

}  // namespace

void Witness::Forget() {
  completions.clear();
  peers_gone.clear();
  issued.clear();
  keys.clear();
}

bool Witness::Plants(Canary canary) { return canary == canary_ && ++occasions_ == kOccasionsBefore; }

absl::StatusOr<std::unique_ptr<DeviceAdapter>> WitnessProvider::OpenAdapter(std::string_view adapter_name) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceAdapter> adapter, inner_.OpenAdapter(adapter_name));
  return std::make_unique<WitnessAdapter>(std::move(adapter), witness_);
}

}  // namespace rnicd::simulation
