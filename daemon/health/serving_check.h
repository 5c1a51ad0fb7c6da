#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace rnicd::health {

// A part of the daemon that the requests of workloads pass.
struct ServingPart {
  // `problem` is why the part cannot serve although it runs; empty if it can. Callable from any thread, also after the
  // check has gone.
  using Answer = std::function<void(std::string problem)>;

  std::string name;
  // Makes the part call `answer` once, on the thread where it does its work. Does not wait for the call.
  std::function<void(Answer answer)> ask;
};

// A part that serves if it runs tasks; `post` gives it one.
ServingPart PartThatRuns(std::string name, std::function<void(std::function<void()> task)> post);

// Whether the daemon serves, apart from its cards.
struct ServingVerdict {
  struct Problem {
    std::string part;
    // "rpc loop 1 has not answered for 7 s", or the part's own words.
    std::string text;
  };

  // Parts that do not answer: the daemon hangs.
  std::vector<Problem> hanging;
  // Parts that answer that they cannot serve.
  std::vector<Problem> failing;

  bool live() const { return hanging.empty(); }
  bool serves() const { return hanging.empty() && failing.empty(); }
  // All texts, a line each.
  std::string Text() const;
};

// Sends a no-op through every part, in a loop, and remembers what has not come back. A part has one no-op at a time.
// Lifetime: Stop, or destroy it, before the parts and what the listener uses.
// Threads:  Read from any, and it never waits for a part; the rest from one.
class ServingCheck {
 public:
  // A part hangs when it takes longer than this.
  static constexpr std::chrono::seconds kDeadline{5};
  static constexpr std::chrono::seconds kInterval{1};

  // Called after each round; `changed` if other parts have problems than after the last. It must not wait for a part.
  using Listener = std::function<void(const ServingVerdict& verdict, bool changed)>;

  // `clock` outlives it.
  explicit ServingCheck(const Clock& clock);
  ~ServingCheck() { Stop(); }
  ServingCheck(const ServingCheck&) = delete;
  ServingCheck& operator=(const ServingCheck&) = delete;

  // Until this is called the daemon does not serve, and does not hang.
  void SetParts(std::vector<ServingPart> parts, Listener listener);
  // Starts the thread; the clock must then be steady_clock's. Without it only RunRound asks the parts.
  void Start();
  // Ends the thread; from now on there are no problems.
  void Stop();
  // Asks each part that has answered, then calls the listener.
  void RunRound();

  ServingVerdict Read() const;

 private:
  struct Board;

  void Run();

  const Clock& clock_;
  // Shared with the answers, which may come at any time.
  const std::shared_ptr<Board> board_;
  std::vector<ServingPart> parts_;
  Listener listener_;
  // The parts with problems after the last round.
  std::vector<std::string> troubled_;

  Mutex mutex_;
  ConditionVariable stop_;
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace rnicd::health
