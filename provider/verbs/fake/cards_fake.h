#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "provider/verbs/card/card_list.h"

namespace rnicd::provider {

// A list of cards that come and go as a test says. Nobody hears of it without Announce.
// Threads: safe.
class FakeCards final : public CardList {
 public:
  std::vector<CardId> List() override {
    MutexLock lock(mutex_);
    ++lists_;
    return std::exchange(is_empty_, false) ? std::vector<CardId>() : cards_;
  }
  bool Has(const CardId& card) override {
    MutexLock lock(mutex_);
    return std::ranges::find(cards_, card) != cards_.end();
  }
  UniqueFd Watch() override {
    UniqueFd watch(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    MutexLock lock(mutex_);
    watches_.emplace_back(dup(watch.get()));
    return watch;
  }
  bool ReadNews(int watch) override {
    uint64_t count = 0;
    return read(watch, &count, sizeof(count)) == sizeof(count);
  }
  int NumaNode(const std::string& name) override {
    MutexLock lock(mutex_);
    const auto found = numa_nodes_.find(name);
    return found != numa_nodes_.end() ? found->second : -1;
  }
  std::vector<IpAddress> AddressesOf(const ibv_gid& /*mac*/) override { return {*IpAddress::FromText("10.0.0.1")}; }

  CardId Add(const std::string& name, int numa_node) {
    MutexLock lock(mutex_);
    numa_nodes_[name] = numa_node;
    cards_.push_back({.name = name, .file = "uverbs0", .instance = ++instances_});
    return cards_.back();
  }
  // Openings of the card go on, as with rxe.
  void Remove(const std::string& name) {
    MutexLock lock(mutex_);
    std::erase_if(cards_, [&](const CardId& card) { return card.name == name; });
  }
  void Announce() {
    MutexLock lock(mutex_);
    for (const UniqueFd& watch : watches_) {
      const uint64_t one = 1;
      (void)!write(watch.get(), &one, sizeof(one));
    }
  }
  // The next list lacks all cards.
  void FailNextList() {
    MutexLock lock(mutex_);
    is_empty_ = true;
  }
  uint64_t lists() const {
    MutexLock lock(mutex_);
    return lists_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<CardId> cards_ RNICD_GUARDED_BY(mutex_);
  std::map<std::string, int> numa_nodes_ RNICD_GUARDED_BY(mutex_);
  std::vector<UniqueFd> watches_ RNICD_GUARDED_BY(mutex_);
  uint64_t instances_ RNICD_GUARDED_BY(mutex_) = 0;
  uint64_t lists_ RNICD_GUARDED_BY(mutex_) = 0;
  bool is_empty_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
