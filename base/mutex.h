#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Annotations for Clang's thread-safety analysis, whose findings are errors in the clang presets. Empty for other
// compilers.
#if defined(__clang__)
#define RNICD_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define RNICD_THREAD_ANNOTATION(x)
#endif

#define RNICD_CAPABILITY(x) RNICD_THREAD_ANNOTATION(capability(x))
#define RNICD_SCOPED_CAPABILITY RNICD_THREAD_ANNOTATION(scoped_lockable)
#define RNICD_GUARDED_BY(x) RNICD_THREAD_ANNOTATION(guarded_by(x))
#define RNICD_REQUIRES(...) RNICD_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define RNICD_EXCLUDES(...) RNICD_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define RNICD_ACQUIRE(...) RNICD_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RNICD_RELEASE(...) RNICD_THREAD_ANNOTATION(release_capability(__VA_ARGS__))

namespace rnicd {

// std::mutex, annotated. Not absl::Mutex: Debian builds that without NDEBUG (slow, aborts on lock-order cycles in
// production) and without instrumentation (blinds TSan).
class RNICD_CAPABILITY("mutex") Mutex {
 public:
  void Lock() RNICD_ACQUIRE() { mutex_.lock(); }
  void Unlock() RNICD_RELEASE() { mutex_.unlock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

class RNICD_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) RNICD_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() RNICD_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class ConditionVariable {
 public:
  // Spurious wake-ups are possible: wait in a loop over the condition.
  void Wait(Mutex& mutex) RNICD_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False on timeout.
  template <typename Clock, typename Duration>
  bool WaitUntil(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& deadline) RNICD_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_until(lock, deadline);
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace rnicd
