// Sleeps before and after calls by which threads and processes wait for each other. The names are those of libc, whose
// functions are called in between.
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <ctime>

#include "tests/jitter/jitter_dice.h"

namespace {

using rnicd::test::JitterDice;

constexpr JitterDice::Microseconds kLongest{4'000};

JitterDice::Microseconds Longest() {
  const char* const text = std::getenv("RNICD_JITTER_MICROSECONDS");
  return text != nullptr ? JitterDice::Microseconds(std::atoi(text)) : kLongest;
}

// Not std::this_thread::sleep_for and no lock: this is inside of locks.
void MaybeSleep() {
  static const JitterDice::Microseconds longest = Longest();
  static thread_local JitterDice dice(0);
  static thread_local bool seeded = false;
  const int kept_errno = errno;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (!seeded) {
    seeded = true;
    dice = JitterDice((static_cast<uint64_t>(gettid()) << 32) + static_cast<uint64_t>(now.tv_nsec) + 1);
  }
  const JitterDice::Milliseconds at(now.tv_sec * 1'000 + now.tv_nsec / 1'000'000);
  if (const int64_t sleep = dice.Roll(at, longest).count(); sleep > 0) {
    const timespec time{.tv_sec = sleep / 1'000'000, .tv_nsec = sleep % 1'000'000 * 1'000};
    nanosleep(&time, nullptr);
  }
  errno = kept_errno;
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

template <typename Function, typename... Arguments>
auto Around(Function* next, Arguments... arguments) {
  MaybeSleep();
  const auto result = next(arguments...);
  MaybeSleep();
  return result;
}

}  // namespace

extern "C" {

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): those of libc are reserved.
ssize_t read(int fd, void* bytes, size_t size) {
  static const auto next = Next<decltype(read)>("read");
  return Around(next, fd, bytes, size);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto next = Next<decltype(write)>("write");
  return Around(next, fd, bytes, size);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static const auto next = Next<decltype(recvmsg)>("recvmsg");
  return Around(next, fd, message, flags);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static const auto next = Next<decltype(sendmsg)>("sendmsg");
  return Around(next, fd, message, flags);
}

int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  static const auto next = Next<decltype(accept4)>("accept4");
  return Around(next, fd, address, size, flags);
}

int close(int fd) {
  static const auto next = Next<decltype(close)>("close");
  return Around(next, fd);
}

int poll(pollfd* watched, nfds_t count, int timeout) {
  static const auto next = Next<decltype(poll)>("poll");
  return Around(next, watched, count, timeout);
}

int epoll_wait(int fd, epoll_event* events, int count, int timeout) {
  static const auto next = Next<decltype(epoll_wait)>("epoll_wait");
  return Around(next, fd, events, count, timeout);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto next = Next<decltype(pthread_mutex_lock)>("pthread_mutex_lock");
  return Around(next, mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static const auto next = Next<decltype(pthread_mutex_unlock)>("pthread_mutex_unlock");
  return Around(next, mutex);
}

// Abseil waits and wakes by it.
long syscall(long number, ...) noexcept {
  static const auto next = Next<decltype(syscall)>("syscall");
  std::va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) {
    argument = va_arg(list, long);
  }
  va_end(list);
  const auto call = [&] {
    return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
  };
  if (number != SYS_futex) {
    return call();
  }
  MaybeSleep();
  const long result = call();
  MaybeSleep();
  return result;
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

}  // extern "C"
