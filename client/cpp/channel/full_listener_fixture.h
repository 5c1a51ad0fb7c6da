#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/waiting_fixture.h"
#include "gtest/gtest.h"

namespace rnicd::inline client {

// Listens with the shortest queue that the kernel has, which connections of its own have filled.
class FullListener {
 public:
  FullListener(const std::string& path, int type) : listener_(socket(AF_UNIX, type | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const auto* const name = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(bind(listener_.get(), name, sizeof(address)), 0);
    EXPECT_EQ(listen(listener_.get(), 0), 0);
    for (;;) {
      UniqueFd filler(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (connect(filler.get(), name, sizeof(address)) != 0) {
        EXPECT_EQ(errno, EAGAIN);
        return;
      }
      fillers_.push_back(std::move(filler));
    }
  }

  // Makes room for all that wait.
  void Drain() {
    for (; !fillers_.empty(); fillers_.pop_back()) {
      EXPECT_TRUE(Accept().valid());
    }
  }
  // Waits for a connection.
  UniqueFd Accept() { return UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

 private:
  const UniqueFd listener_;
  std::vector<UniqueFd> fillers_;
};

// Runs a function on a thread of its own, until the end of this object.
class Blocked {
 public:
  explicit Blocked(std::function<void()> run)
      : thread_([this, run = std::move(run)] {
          tid_ = gettid();
          run();
        }) {}
  ~Blocked() { thread_.join(); }
  // True as soon as the thread sleeps in the kernel.
  bool AwaitSleep() const {
    return Eventually([this] {
      std::ifstream file("/proc/self/task/" + std::to_string(tid_) + "/stat");
      std::string stat;
      std::getline(file, stat);
      const size_t name_end = stat.rfind(')');
      return name_end != std::string::npos && stat.compare(name_end, 3, ") S") == 0;
    });
  }

 private:
  std::atomic<pid_t> tid_ = 0;
  std::thread thread_;
};

}  // namespace rnicd::inline client
