#include "tests/bench/ring_wakeups.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>

#include "absl/status/status.h"
#include "ring/layout.h"
#include "ring/shared_word.h"
#include "ring/wakeup.h"
#include "tests/bench/ring_turns.h"

namespace rnicd::bench {
namespace {

[[noreturn]] void Answer(int doorbell, uint32_t& word) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int epoll = epoll_create1(0);
  epoll_event event = {.events = EPOLLIN | EPOLLET, .data = {}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, doorbell, &event);
  for (uint32_t wakes = 0; epoll_wait(epoll, &event, 1, -1) == 1;) {
    ring::WakeSleeper(static_cast<uint32_t>(ring::Wakeup::kFutex), word, &wakes);
  }
  _exit(0);
}

}  // namespace

BareWakeups::BareWakeups() : doorbell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || !doorbell_.valid()) {
    Fail(absl::InternalError("mmap, eventfd"));
  }
  word_ = static_cast<uint32_t*>(page);
  if (fork() == 0) {
    Answer(doorbell_.get(), *word_);
  }
}

void BareWakeups::RoundTrip() {
  const uint32_t seen = ring::LoadAcquire(*word_);
  eventfd_write(doorbell_.get(), 1);
  while (ring::LoadAcquire(*word_) == seen) {
    ring::FutexWait(*word_, seen, std::chrono::seconds(1));
  }
}

}  // namespace rnicd::bench
