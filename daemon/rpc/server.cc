#include "daemon/rpc/server.h"

#include <chrono>
#include <utility>

#include "base/status.h"
#include "base/system/heap.h"

namespace rnicd::rpc {
namespace {

// What a connection takes besides its calls, most of it in nghttp2.
constexpr uint64_t kConnectionBytes = 16 << 10;
// The allocator keeps what it was given back, unless it is asked for it: after a flood, the peak for ever. Asked when
// so much was freed, and not at once, so that many connections that end together cost one search.
constexpr uint64_t kTrimBytes = 4 << 20;
constexpr std::chrono::milliseconds kTrimDelay{100};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(uint32_t threads, const Limits& limits, const Clock& clock) {
  std::vector<std::shared_ptr<EventLoop>> loops;
  for (uint32_t index = 0; index < threads; ++index) {
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<EventLoop> loop, EventLoop::Start(clock));
    loops.push_back(std::move(loop));
  }
  return std::unique_ptr<Server>(new Server(std::move(loops), limits));
}

Server::Server(std::vector<std::shared_ptr<EventLoop>> loops, const Limits& limits)
    : limits_(limits), budget_(std::make_shared<Budget>(limits.daemon_bytes, nullptr)), loops_(std::move(loops)) {}

// Every connection ends within its time for last words.
Server::~Server() {
  {
    MutexLock lock(mutex_);
    for (const auto& [raw, connection] : connections_) {
      connection->Close();
    }
    while (!connections_.empty()) {
      changed_.Wait(mutex_);
    }
  }
  for (const std::shared_ptr<EventLoop>& loop : loops_) {
    loop->Stop();
  }
}

std::shared_ptr<Connection> Server::Serve(Client client, CallHandler handler) {
  MutexLock lock(mutex_);
  auto budget = std::make_shared<Budget>(limits_.connection_bytes, BudgetOf(client.owner));
  // The server may be destroyed as soon as it knows of the end.
  auto on_end = [this, told = std::move(client.on_end)](const Connection& ended) {
    if (told) {
      told();
    }
    OnEnd(ended);
  };
  const auto connection =
      std::make_shared<Connection>(loops_[next_loop_++ % loops_.size()], std::move(client.socket),
                                   Connection::Options{.calls = {.limits = limits_,
                                                                 .handler = std::move(handler),
                                                                 .budget = std::move(budget),
                                                                 .secret = client.secret},
                                                       .refuses_descriptors = client.refuses_descriptors,
                                                       .on_end = std::move(on_end)});
  connections_[connection.get()] = connection;
  connection->Open();
  return connection;
}

size_t Server::connections() {
  MutexLock lock(mutex_);
  return connections_.size();
}

std::shared_ptr<Budget> Server::BudgetOf(const std::string& owner) {
  // Owners come and go with their containers. One whose last charge is gone is forgotten when the table has doubled.
  if (owners_.size() >= owners_to_prune_) {
    std::erase_if(owners_, [](const auto& entry) { return entry.second.expired(); });
    owners_to_prune_ = 2 * owners_.size() + kOwnersMin;
  }
  std::weak_ptr<Budget>& known = owners_[owner];
  std::shared_ptr<Budget> budget = known.lock();
  if (budget == nullptr) {
    budget = std::make_shared<Budget>(limits_.owner_bytes, budget_);
    known = budget;
  }
  return budget;
}

void Server::OnEnd(const Connection& connection) {
  std::shared_ptr<Connection> last;  // Destroyed without the lock.
  MutexLock lock(mutex_);
  const auto found = connections_.find(&connection);
  last = std::move(found->second);
  connections_.erase(found);
  ScheduleTrim(connection);
  changed_.NotifyAll();
}

void Server::ScheduleTrim(const Connection& ended) {
  freed_bytes_ += kConnectionBytes + ended.peak_bytes();
  if (freed_bytes_ >= kTrimBytes && !std::exchange(trim_scheduled_, true)) {
    ended.loop().CallAt(ended.loop().Now() + kTrimDelay, [this] {
      {
        MutexLock lock(mutex_);
        trim_scheduled_ = false;
        freed_bytes_ = 0;
      }
      ReturnFreedMemory();
    });
  }
}

}  // namespace rnicd::rpc
