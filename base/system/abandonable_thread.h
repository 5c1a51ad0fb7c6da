#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace rnicd {

// A thread that the system may block without a limit, for example on a pipe without a reader or on a disk that hangs.
// Its owner waits for it with a timeout.
// Lifetime: `run` owns what it uses, or is notified when that ends. EndBy is called once, before the destructor.
class AbandonableThread {
 public:
  explicit AbandonableThread(std::function<void()> run);

  // Joins the thread if `run` has returned by then. On timeout abandons it and returns false.
  bool EndBy(Instant deadline);

 private:
  std::future<void> ended_;
  std::thread thread_;
};

// The result of `call`; nothing on timeout, and its thread is then abandoned.
template <typename T>
std::optional<T> ResultBy(Instant deadline, std::function<T()> call) {
  const auto result = std::make_shared<std::optional<T>>();
  AbandonableThread thread([result, call = std::move(call)] { result->emplace(call()); });
  return thread.EndBy(deadline) ? std::move(*result) : std::nullopt;
}

}  // namespace rnicd
