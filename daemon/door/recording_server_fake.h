#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/system/unique_socket.h"
#include "daemon/door/connection_server.h"

namespace rnicd::door {

// Records the connections it is to serve, and keeps them until they are closed.
class RecordingServer final : public ConnectionServer {
 public:
  std::unique_ptr<ServedConnection> Serve(Admitted admitted) override {
    auto served = std::make_unique<Served>(admitted.socket);
    admitted.socket.reset();
    MutexLock lock(mutex_);
    admitted_.push_back(std::move(admitted));
    return served;
  }
  std::vector<Admitted> admitted() const {
    MutexLock lock(mutex_);
    return admitted_;
  }

 private:
  class Served final : public ServedConnection {
   public:
    explicit Served(std::shared_ptr<const UniqueSocket> socket) : socket_(std::move(socket)) {}
    void Disconnected() override {}
    bool SilentSince(Instant) const override { return false; }

   private:
    const std::shared_ptr<const UniqueSocket> socket_;
  };

  mutable Mutex mutex_;
  std::vector<Admitted> admitted_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::door
