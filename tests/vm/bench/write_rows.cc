// A write of 64 bytes to the same card, from posting it to its completion: by libibverbs, and through rnicd.
#include <chrono>

#include "base/ndk/access_rights.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/session/connection.h"
#include "tests/vm/bench/direct_pair.h"
#include "tests/vm/bench/rows.h"

namespace rnicd::vm_bench {
namespace {

constexpr uint32_t kBytes = 64;
constexpr int kWritesInARow = 20;

// A client of librnicd with a queue pair that is connected to itself.
class Writer {
 public:
  Writer(const test::DaemonProcess& daemon, DataPath path)
      : client_(Must(Client::Connect({.socket_dir = daemon.socket_dir(), .adapter_name = kCard, .data_path = path}))),
        memory_(Must(Memory::Allocate(client_, {.size = 2 * kSmallPage}))),
        region_(Must(MemoryRegion::Register(memory_, kMrFlagRemoteWrite))),
        queue_(Must(CompletionQueue::Create(client_, 64))),
        pair_(Must(QueuePair::Create(queue_, queue_, {}))) {
    Require(pair_.Connect(pair_.address()).ok(), "a queue pair cannot be connected to itself");
  }

  void Write() {
    const uint64_t to = reinterpret_cast<uintptr_t>(memory_.bytes().data()) + kSmallPage;
    const PostOutcome posted =
        Must(pair_.Post(WorkChain().Write({Sge::Of(memory_.bytes().first(kBytes), region_.local_token())},
                                          {.address = {to}, .token = region_.remote_token()}, {})));
    Require(posted.failure.ok(), posted.failure.ToString());
    const std::vector<Completion> completions = Must(queue_.PollFor(1, kWaitMax));
    Require(completions.size() == 1 && completions.front().ok(), "a write has failed");
  }
  // An entry of a ring for which the daemon only looks something up.
  void LookUp() { Must(*client_.connection()->rings().GetRemoteToken(region_.id())); }

 private:
  Client client_;
  Memory memory_;
  MemoryRegion region_;
  CompletionQueue queue_;
  QueuePair pair_;
};

Contender InARow(const std::string& name, std::function<void()> once) {
  return {.name = name,
          .run =
              [once = std::move(once)] {
                for (int time = 0; time < kWritesInARow; ++time) {
                  once();
                }
              },
          .operations = kWritesInARow};
}

}  // namespace

nlohmann::json WriteRows(DirectCard& card, test::DaemonProcess& daemon) {
  DirectPair direct(card);
  Writer by_rings(daemon, DataPath::kRings);
  Writer by_calls(daemon, DataPath::kCalls);
  return nlohmann::json::array(
      {Row("write", {{"bytes", kBytes}},
           Measure({InARow("direct", [&] { direct.Write(kBytes, DirectPair::Wait::kBusily); }),
                    InARow("direct_event", [&] { direct.Write(kBytes, DirectPair::Wait::kForEvent); }),
                    InARow("rnicd_rings", [&] { by_rings.Write(); }), InARow("ring_entry", [&] { by_rings.LookUp(); }),
                    InARow("rnicd_calls", [&] { by_calls.Write(); })},
                   {.budget = std::chrono::seconds(10)}))});
}

}  // namespace rnicd::vm_bench
