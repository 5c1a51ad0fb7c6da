// Chains of work requests on two connected queue pairs: all operations, flags, SGEs, windows and inline data. For every
// input, each request completes as often as it must, no byte moves without a right, and nothing is left.
//
// Input: a byte of options, then a sequence of steps; each is a byte that selects the action and the side, followed by
// the action's arguments.

#include <memory>
#include <vector>

#include "tests/fuzz/chain_input.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/node.h"
#include "tests/fuzz/queue_side.h"

namespace rnicd::fuzz {
namespace {

constexpr size_t kStepsMax = 64;
constexpr uint32_t kLargeQueue = 256;
constexpr uint32_t kSmallQueue = 5;

NodeOptions OptionsOf(uint8_t options) {
  NodeOptions result;
  // Reads stay in flight while later requests are executed.
  result.soft.read_delay = std::chrono::microseconds((options & 0x01) != 0 ? 10 : 0);
  if ((options & 0x02) != 0) {
    result.soft.adapter_flags &= ~(kAdapterFlagReadSinkNotRequired | kAdapterFlagReadLocalInvalidate);
  }
  if ((options & 0x04) != 0) {
    result.limits.session[core::Resource::kPostedPages] = 8;
  }
  return result;
}

// One run over an input.
class WorkRequests {
 public:
  explicit WorkRequests(Input& input) : input_(input), options_(input.Byte()), node_(OptionsOf(options_)) {
    const uint32_t depth = (options_ & 0x08) != 0 ? kSmallQueue : kLargeQueue;
    for (const uint64_t process : {1, 2}) {
      sides_.push_back(std::make_unique<QueueSide>(node_, process, depth));
    }
    ConnectBoth();
  }

  void Run() {
    for (size_t step = 0; step < kStepsMax && !input_.empty(); ++step) {
      Step();
    }
    Renew();
    for (const auto& side : sides_) {
      side->DrainEvents();
      side->CheckUntouched();
    }
    sides_.clear();
    node_.EndAll();
  }

 private:
  void Step() {
    const uint8_t kind = input_.Byte();
    const size_t which = kind >> 7;
    QueueSide& side = *sides_[which];
    switch (kind % 12) {
      default:
        return PostTo(side, *sides_[1 - which]);
      case 5:
        return side.Poll(input_.Byte());
      case 6:
        return static_cast<void>(node_.RunOne());
      case 7:
        return node_.Settle();
      case 8:
        return static_cast<void>(
            side.session->Begin()->queues().Arm(side.queue, static_cast<CqNotifyType>(input_.Below(3))));
      case 9:
        return Break(side);
      case 10:
        return TakeAway(side);
      case 11:
        return Renew();
    }
  }

  void PostTo(QueueSide& side, const QueueSide& peer) {
    const ChainInput chain(input_, side, peer, context_);
    side.Post(chain.requests());
    side.DrainEvents();
  }

  void Break(QueueSide& side) {
    if (input_.Bit()) {
      (void)side.session->Begin()->pairs().Flush(side.pair);
    } else {
      (void)side.session->Begin()->pairs().Disconnect(side.pair);
    }
  }

  // Closes an object that posted requests name.
  void TakeAway(QueueSide& side) {
    const auto done = [](const absl::Status&) {};
    switch (input_.Below(7)) {
      case 0:
        return static_cast<void>(side.session->Begin()->regions().Deregister(side.region, {}, done));
      case 1:
        return static_cast<void>(side.session->Begin()->regions().Close(side.region, {}, done));
      case 2:
        return static_cast<void>(side.session->Begin()->regions().Close(side.fast, {}, done));
      case 3:
        return static_cast<void>(side.session->Begin()->windows().Close(side.window, {}, done));
      case 4:
        return static_cast<void>(side.session->Begin()->mappings().Release(side.mapping.id));
      case 5:
        return static_cast<void>(
            side.session->Begin()->queues().Resize(side.queue, static_cast<uint32_t>(input_.Number())));
      default:
        return static_cast<void>(side.session->Begin()->queues().Close(side.queue, {}, done));
    }
  }

  // Replaces the queue pairs of both sides.
  void Renew() {
    for (const auto& side : sides_) {
      side->NewPair();
    }
    ConnectBoth();
  }

  void ConnectBoth() {
    sides_[0]->Connect(sides_[1]->Address());
    sides_[1]->Connect(sides_[0]->Address());
  }

  Input& input_;
  const uint8_t options_;
  FuzzNode node_;
  std::vector<std::unique_ptr<QueueSide>> sides_;
  uint64_t context_ = 0;
};

}  // namespace
}  // namespace rnicd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rnicd::fuzz::Input input(data, size);
  rnicd::fuzz::WorkRequests(input).Run();
  return 0;
}
