#include "daemon/health/serving_check.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rnicd::health {

ServingPart PartThatRuns(std::string name, std::function<void(std::function<void()> task)> post) {
  return {.name = std::move(name), .ask = [post = std::move(post)](ServingPart::Answer answer) {
            post([answer = std::move(answer)] { answer({}); });
          }};
}

std::string ServingVerdict::Text() const {
  std::string text;
  for (const std::vector<Problem>* problems : {&hanging, &failing}) {
    for (const Problem& problem : *problems) {
      absl::StrAppend(&text, problem.text, "\n");
    }
  }
  return text;
}

struct ServingCheck::Board {
  enum class Phase : uint8_t { kStarting, kChecking, kStopped };
  struct Part {
    std::string name;
    // When the no-op was sent that has not come back; empty while there is none.
    std::optional<Instant> asked;
    std::string problem;
  };

  mutable Mutex mutex;
  Phase phase RNICD_GUARDED_BY(mutex) = Phase::kStarting;
  std::vector<Part> parts RNICD_GUARDED_BY(mutex);
  // When the last round began.
  Instant round RNICD_GUARDED_BY(mutex);

  void BeginRound(Instant now) {
    MutexLock lock(mutex);
    round = now;
  }

  // False while the last no-op is still under way.
  bool Ask(size_t index, Instant now) {
    MutexLock lock(mutex);
    if (parts[index].asked.has_value()) {
      return false;
    }
    parts[index].asked = now;
    return true;
  }

  void Answer(size_t index, std::string problem) {
    MutexLock lock(mutex);
    parts[index].asked.reset();
    parts[index].problem = std::move(problem);
  }

  ServingVerdict Judge(Instant now) const {
    MutexLock lock(mutex);
    ServingVerdict verdict;
    if (phase == Phase::kStarting) {
      verdict.failing.push_back({.part = "front door", .text = "the front door is not open yet"});
    }
    if (phase != Phase::kChecking) {
      return verdict;
    }
    for (const Part& part : parts) {
      if (part.asked.has_value() && now - *part.asked > kDeadline) {
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - *part.asked).count();
        verdict.hanging.push_back(
            {.part = part.name, .text = absl::StrCat(part.name, " has not answered for ", seconds, " s")});
      } else if (!part.problem.empty()) {
        verdict.failing.push_back({.part = part.name, .text = part.problem});
      }
    }
    // If the listener does not return, no round begins any more.
    if (verdict.live() && now - round > kDeadline + kInterval) {
      verdict.hanging.push_back({.part = "serving check", .text = "the serving check does not go on"});
    }
    return verdict;
  }
};

ServingCheck::ServingCheck(const Clock& clock) : clock_(clock), board_(std::make_shared<Board>()) {}

void ServingCheck::SetParts(std::vector<ServingPart> parts, Listener listener) {
  parts_ = std::move(parts);
  listener_ = std::move(listener);
  MutexLock lock(board_->mutex);
  for (const ServingPart& part : parts_) {
    board_->parts.push_back({.name = part.name});
  }
  board_->round = clock_.Now();
  board_->phase = Board::Phase::kChecking;
}

void ServingCheck::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ServingCheck::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  if (thread_.joinable()) {
    thread_.join();
  }
  MutexLock lock(board_->mutex);
  board_->phase = Board::Phase::kStopped;
}

void ServingCheck::RunRound() {
  board_->BeginRound(clock_.Now());
  for (size_t index = 0; index < parts_.size(); ++index) {
    if (board_->Ask(index, clock_.Now())) {
      parts_[index].ask([board = board_, index](std::string problem) { board->Answer(index, std::move(problem)); });
    }
  }
  const ServingVerdict verdict = Read();
  std::vector<std::string> troubled;
  for (const std::vector<ServingVerdict::Problem>* problems : {&verdict.hanging, &verdict.failing}) {
    for (const ServingVerdict::Problem& problem : *problems) {
      troubled.push_back(problem.part);
    }
  }
  const bool changed = std::exchange(troubled_, troubled) != troubled;
  listener_(verdict, changed);
}

void ServingCheck::Run() {
  while (true) {
    RunRound();
    const Instant next = clock_.Now() + kInterval;
    MutexLock lock(mutex_);
    while (!stopping_ && stop_.WaitUntil(mutex_, next)) {
    }
    if (stopping_) {
      return;
    }
  }
}

ServingVerdict ServingCheck::Read() const { return board_->Judge(clock_.Now()); }

}  // namespace rnicd::health
