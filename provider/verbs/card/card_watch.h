#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/files/unique_fd.h"
#include "provider/verbs/card/card_list.h"
#include "provider/verbs/card/event_loop.h"

namespace rnicd::provider {

// Looks for cards when the kernel says that some have come or gone, and at an interval, because what it says may be
// lost. Has a thread of its own, because the look opens cards and tries them, which may take long.
class CardWatch final : public EventLoop::Handler {
 public:
  // True if another look should follow soon. Called on the thread.
  using Look = std::function<bool()>;

  // `news`: the descriptor of CardList::Watch. `cards` outlives the watch.
  static std::shared_ptr<CardWatch> Start(CardList& cards, UniqueFd news, std::chrono::milliseconds interval,
                                          Look look);
  // Once it has returned, there are no more looks. Must be called before the end, and not on the thread.
  void Stop() { loop_.Stop(); }

  bool OnReadable(int descriptor) override;
  void OnTick() override;

 private:
  CardWatch(CardList& cards, UniqueFd news, std::chrono::milliseconds interval, Look look);
  void LookNow();

  CardList& cards_;
  const UniqueFd news_;
  const std::chrono::milliseconds interval_;
  const Look look_;
  // Used by the thread.
  std::chrono::steady_clock::time_point next_;
  EventLoop loop_;
};

}  // namespace rnicd::provider
