#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace rnicd {

// A thread that the system may block for good, as a pipe that nobody reads or a disk that hangs does. Its owner waits
// for it no longer than it wants to.
// Lifetime: `run` owns what it uses, or learns when that ends. EndBy is called once, before the destructor.
class AbandonableThread {
 public:
  explicit AbandonableThread(std::function<void()> run);

  // Joins the thread if `run` has returned by then. Otherwise leaves it behind and returns false.
  bool EndBy(Instant deadline);

 private:
  std::future<void> ended_;
  std::thread thread_;
};

// What `call` returns; nothing if it has not returned by then, and its thread is left behind.
template <typename T>
std::optional<T> ResultBy(Instant deadline, std::function<T()> call) {
  const auto result = std::make_shared<std::optional<T>>();
  AbandonableThread thread([result, call = std::move(call)] { result->emplace(call()); });
  return thread.EndBy(deadline) ? std::move(*result) : std::nullopt;
}

}  // namespace rnicd
