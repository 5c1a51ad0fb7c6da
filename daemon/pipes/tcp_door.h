#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/system/unique_socket.h"
#include "daemon/pipes/door.h"

namespace rnicd::pipes {

// Finds the process behind a connection of TCP.
// Threads: one; keeps its buffer, which has the size of the system's table.
class ConnectionTable {
 public:
  // A connection between two ports of this machine's loopback addresses, seen from the client.
  struct Ends {
    uint32_t address = 0;
    uint16_t client_port = 0;
    uint16_t daemon_port = 0;
  };

  // 0 when there is no such connection any more. Source: GetExtendedTcpTable.
  uint32_t PidOf(const Ends& ends);

 private:
  // Reads the system's table of that family into the buffer; false when it cannot be read.
  bool Read(uint32_t family);

  std::vector<std::byte> buffer_;
};

// Accepts connections on 127.0.0.1, on a port for each door, and asks Windows which process made them: once their first
// bytes have come, so that a silent one does not cost a look into the system's table, and is soon dropped.
// Threads: Open, Start and Stop from one; one of its own accepts.
class TcpDoor {
 public:
  // Called on the thread that accepts, which goes on when it returns; `pid` is 0 when the client has gone.
  using OnConnection = std::function<void(Door door, uint32_t pid, UniqueSocket socket)>;

  // Errors: kUnavailable.
  static absl::StatusOr<std::unique_ptr<TcpDoor>> Open();
  ~TcpDoor();

  uint16_t port(Door door) const { return listeners_[static_cast<size_t>(door)].port; }
  void Start(OnConnection on_connection);
  void Stop();
  // Runs the task on the thread that accepts, within its next tenth of a second. From any thread.
  void Post(std::function<void()> task) RNICD_EXCLUDES(mutex_);

 private:
  struct Listener {
    UniqueSocket socket;
    uint16_t port = 0;
  };

  // A connection that has sent nothing yet.
  struct Silent {
    Door door = Door::kWorkload;
    UniqueSocket socket;
    ConnectionTable::Ends ends;
    Instant since;
  };

  TcpDoor() = default;
  static absl::StatusOr<Listener> Listen();
  void Run();
  // False when no connection is left to accept.
  bool AcceptOne(Door door);
  void Introduce(Silent connection);
  void DropSilent();
  void RunTasks() RNICD_EXCLUDES(mutex_);

  std::array<Listener, 2> listeners_;
  ConnectionTable table_;
  // The oldest first.
  std::vector<Silent> silent_;
  OnConnection on_connection_;
  Mutex mutex_;
  std::vector<std::function<void()>> tasks_ RNICD_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace rnicd::pipes
