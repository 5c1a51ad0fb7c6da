// A connection by name on one node, step by step, until a first message has arrived.
#include <benchmark/benchmark.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/listener.h"
#include "client/cpp/queue_pair.h"
#include "tests/bench/bench.h"

namespace rnicd::bench {
namespace {

constexpr std::chrono::seconds kLong{30};
constexpr const char* kName = "bench";

void Require(const absl::Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::abort();
  }
}

template <typename Value>
Value Required(absl::StatusOr<Value> value) {
  Require(value.status());
  return *std::move(value);
}

// One end, with a queue pair for one connection.
struct End {
  explicit End(const Client& client)
      : queue(Required(CompletionQueue::Create(client, 4))), pair(Required(QueuePair::Create(queue, queue, {}))) {}

  void Post(const WorkChain& request) { Require(Required(pair.Post(request)).failure); }
  void Finish() {
    const auto done = Required(queue.PollFor(1, kLong));
    if (done.empty() || !done.front().ok()) {
      Require(absl::AbortedError("a request failed"));
    }
  }

  CompletionQueue queue;
  QueuePair pair;
};

Client NewClient(const test::DaemonProcess& daemon) {
  return Required(
      Client::Connect({.socket_dir = daemon.socket_dir(), .label = "connect", .data_path = DataPath::kCalls}));
}

// The passive side, on a thread of its own: connections one after the other.
class Passive {
 public:
  explicit Passive(const test::DaemonProcess& daemon)
      : client_(NewClient(daemon)), listener_(Required(Listener::Listen(client_, {.name = kName}))), thread_([this] {
          for (Wait(); !stop_; Wait()) {
            Serve();
          }
        }) {}
  ~Passive() {
    stop_ = true;
    next_.release();
    thread_.join();
  }
  Passive(const Passive&) = delete;
  Passive& operator=(const Passive&) = delete;

  // Returns when it is about to wait for a request.
  void Prepare() {
    next_.release();
    ready_.acquire();
  }
  void AwaitByte() { arrived_.acquire(); }

 private:
  void Wait() { next_.acquire(); }
  void Serve() {
    End end(client_);
    end.Post(WorkChain().Receive({}, {}));
    ready_.release();
    Connector connector = Required(listener_.NextRequest(kLong));
    Require(connector.Accept(end.pair));
    end.Finish();
    arrived_.release();
    Require(connector.Disconnect());
  }

  const Client client_;
  Listener listener_;
  std::binary_semaphore next_{0};
  std::binary_semaphore ready_{0};
  std::binary_semaphore arrived_{0};
  bool stop_ = false;
  std::thread thread_;
};

// The steps whose time is measured, in this order.
enum class Step : uint8_t { kConnect, kComplete, kFirstByte, kAll };

void ByName(benchmark::State& state, const test::DaemonProcess& daemon, Step step) {
  using Clock = std::chrono::steady_clock;
  Passive passive(daemon);
  const Client client = NewClient(daemon);
  for (auto _ : state) {
    End end(client);
    Connector connector = Required(Connector::Create(client));
    passive.Prepare();
    std::array<Clock::time_point, 4> times;
    times[0] = Clock::now();
    Require(connector.Connect(end.pair, std::string(kName)));
    times[1] = Clock::now();
    Require(connector.CompleteConnect());
    times[2] = Clock::now();
    end.Post(WorkChain().Send({}, {}));
    passive.AwaitByte();
    times[3] = Clock::now();
    end.Finish();
    Require(connector.Disconnect());
    const size_t first = step == Step::kAll ? 0 : static_cast<size_t>(step);
    const size_t last = step == Step::kAll ? 3 : first + 1;
    state.SetIterationTime(std::chrono::duration<double>(times[last] - times[first]).count());
  }
}

// The same over a Unix socket: connect, and a byte that another thread has read.
void ByUnixSocket(benchmark::State& state) {
  const test::TempDir folder;
  const std::string path = folder.path() + "/socket";
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  const UniqueFd listening(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(listening.get(), where, sizeof(address)) != 0 || listen(listening.get(), 1) != 0) {
    state.SkipWithError("no socket");
    return;
  }
  std::binary_semaphore arrived(0);
  std::thread reader([&] {
    // A connection without a byte is the last.
    for (char byte = 0; true; arrived.release()) {
      const UniqueFd accepted(accept(listening.get(), nullptr, nullptr));
      if (read(accepted.get(), &byte, 1) != 1) {
        return;
      }
    }
  });
  const auto connect_to = [&] {
    UniqueFd connected(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    Require(connect(connected.get(), where, sizeof(address)) == 0 ? absl::OkStatus() : absl::AbortedError("connect"));
    return connected;
  };
  for (auto _ : state) {
    const UniqueFd connected = connect_to();
    (void)!write(connected.get(), "x", 1);
    arrived.acquire();
  }
  connect_to();
  reader.join();
}

}  // namespace

void AddConnectRows(const test::DaemonProcess& daemon) {
  benchmark::RegisterBenchmark("library/connect/unix_socket", ByUnixSocket)->UseRealTime();
  const std::pair<const char*, Step> steps[] = {{"library/connect/connect", Step::kConnect},
                                                {"library/connect/complete", Step::kComplete},
                                                {"library/connect/first_message", Step::kFirstByte},
                                                {"library/connect/all", Step::kAll}};
  for (const auto& [name, step] : steps) {
    benchmark::RegisterBenchmark(name, [&daemon, step = step](benchmark::State& state) {
      ByName(state, daemon, step);
    })->UseManualTime();
  }
}

}  // namespace rnicd::bench
