#include "daemon/door/bulkhead.h"

#include <chrono>
#include <deque>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"

namespace rnicd::door {
namespace {

// The destructor takes jobs for blocked when none has ended for so long.
constexpr std::chrono::milliseconds kFarewell{300};

}  // namespace

struct Bulkhead::State {
  explicit State(const Limits& given) : limits(given) {}

  const Limits limits;
  Mutex mutex;
  ConditionVariable changed;
  // Waiting jobs by owner. An owner stays listed while one of its jobs runs.
  std::unordered_map<std::string, std::deque<Job>> owners RNICD_GUARDED_BY(mutex);
  // Owners with a waiting job and no running one, in the order of their turns.
  std::deque<std::string> turns RNICD_GUARDED_BY(mutex);
  size_t jobs RNICD_GUARDED_BY(mutex) = 0;
  size_t threads RNICD_GUARDED_BY(mutex) = 0;
  size_t idle_threads RNICD_GUARDED_BY(mutex) = 0;
  bool stopping RNICD_GUARDED_BY(mutex) = false;
  // Second jobs of Start that run.
  size_t afters RNICD_GUARDED_BY(mutex) = 0;

  void Add(const std::string& owner, Job job) RNICD_REQUIRES(mutex) {
    const auto [entry, is_new] = owners.try_emplace(owner);
    entry->second.push_back(std::move(job));
    ++jobs;
    if (is_new) {
      turns.push_back(owner);
    }
  }

  bool NeedsThread() const RNICD_REQUIRES(mutex) { return turns.size() > idle_threads && threads < limits.threads; }

  void RunOne() RNICD_REQUIRES(mutex) {
    const std::string owner = std::move(turns.front());
    turns.pop_front();
    // References to entries of an unordered map stay valid when others are added.
    std::deque<Job>& waiting = owners.at(owner);
    Job job = std::move(waiting.front());
    waiting.pop_front();
    mutex.Unlock();
    job();
    job = nullptr;  // What it owns may block too.
    mutex.Lock();
    --jobs;
    if (waiting.empty()) {
      owners.erase(owner);
    } else {
      turns.push_back(owner);
    }
    changed.NotifyAll();
  }

  void RunAll() {
    MutexLock lock(mutex);
    while (true) {
      while (!turns.empty()) {
        RunOne();
      }
      // One waits for the next job, so that a storm of jobs leaves no threads behind.
      if (stopping || idle_threads > 0) {
        break;
      }
      ++idle_threads;
      changed.Wait(mutex);
      --idle_threads;
    }
    --threads;
    changed.NotifyAll();
  }

  void RunAfter(const Job& after) {
    {
      MutexLock lock(mutex);
      if (stopping) {
        return;
      }
      ++afters;
    }
    after();
    MutexLock lock(mutex);
    --afters;
    changed.NotifyAll();
  }

  // Without a new thread the job waits for one of the others.
  static void StartThread(const std::shared_ptr<State>& state) {
    try {
      std::thread([state] { state->RunAll(); }).detach();
    } catch (const std::system_error&) {
      MutexLock lock(state->mutex);
      --state->threads;
    }
  }
};

// The first thread at once: where the machine has no other left, jobs still have one.
Bulkhead::Bulkhead(const Clock& clock, const Limits& limits) : clock_(clock), state_(std::make_shared<State>(limits)) {
  {
    MutexLock lock(state_->mutex);
    ++state_->threads;
  }
  State::StartThread(state_);
}

Bulkhead::~Bulkhead() {
  MutexLock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.NotifyAll();
  while (state_->afters > 0) {
    state_->changed.Wait(state_->mutex);
  }
  size_t jobs = state_->jobs;
  Instant limit = clock_.Now() + kFarewell;
  while (state_->threads > 0 && clock_.WaitUntil(state_->changed, state_->mutex, limit)) {
    if (std::exchange(jobs, state_->jobs) != state_->jobs) {
      limit = clock_.Now() + kFarewell;
    }
  }
}

void Bulkhead::Run(const std::string& owner, Job job) {
  bool needs_thread = false;
  {
    MutexLock lock(state_->mutex);
    state_->Add(owner, std::move(job));
    needs_thread = state_->NeedsThread();
    state_->threads += needs_thread ? 1 : 0;
  }
  if (needs_thread) {
    State::StartThread(state_);
  } else {
    state_->changed.NotifyAll();
  }
}

bool Bulkhead::TryRun(const std::string& owner, Job job) {
  {
    MutexLock lock(state_->mutex);
    const auto found = state_->owners.find(owner);
    if (found != state_->owners.end() && found->second.size() >= state_->limits.waiting_of_owner) {
      return false;
    }
  }
  Run(owner, std::move(job));
  return true;
}

// The thread that runs the job keeps the state.
Bulkhead::Started Bulkhead::Start(const std::string& owner, Job blocking, Job after) {
  const bool queued =
      TryRun(owner, [state = state_.get(), blocking = std::move(blocking), after = std::move(after)]() mutable {
        blocking();
        state->RunAfter(after);
      });
  return queued ? Started::kQueued : Started::kRefused;
}

size_t Bulkhead::size() const {
  MutexLock lock(state_->mutex);
  return state_->jobs;
}

size_t Bulkhead::threads() const {
  MutexLock lock(state_->mutex);
  return state_->threads;
}

}  // namespace rnicd::door
