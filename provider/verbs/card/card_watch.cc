#include "provider/verbs/card/card_watch.h"

#include <utility>

namespace rnicd::provider {

std::shared_ptr<CardWatch> CardWatch::Start(CardList& cards, UniqueFd news, std::chrono::milliseconds interval,
                                            Look look) {
  std::shared_ptr<CardWatch> watch(new CardWatch(cards, std::move(news), interval, std::move(look)));
  watch->loop_.Add(watch->news_.get(), watch);
  return watch;
}

CardWatch::CardWatch(CardList& cards, UniqueFd news, std::chrono::milliseconds interval, Look look)
    : cards_(cards),
      news_(std::move(news)),
      interval_(interval),
      look_(std::move(look)),
      next_(std::chrono::steady_clock::now() + interval) {}

bool CardWatch::OnReadable(int descriptor) {
  if (cards_.ReadNews(descriptor)) {
    LookNow();
  }
  return true;
}

void CardWatch::OnTick() {
  if (std::chrono::steady_clock::now() >= next_) {
    LookNow();
  }
}

void CardWatch::LookNow() {
  const bool again = look_();
  next_ = std::chrono::steady_clock::now() + (again ? std::chrono::milliseconds(0) : interval_);
}

}  // namespace rnicd::provider
