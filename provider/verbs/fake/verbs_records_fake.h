#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "provider/verbs/fake/verbs_fake.h"

// FakeVerbs' record of each object; private to its source files.
namespace rnicd::provider {

class FakeVerbs::Signal {
 public:
  // False on failure, with errno set.
  bool Open() {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
      return false;
    }
    read_end_ = UniqueFd(ends[0]);
    write_end_ = UniqueFd(ends[1]);
    return true;
  }
  int fd() const { return read_end_.get(); }
  void Set(bool readable) {
    char byte = 0;
    if (readable && !readable_ && write_end_.valid()) {
      readable_ = write(write_end_.get(), &byte, 1) == 1;
    } else if (!readable && readable_) {
      readable_ = read(read_end_.get(), &byte, 1) != 1;
    }
  }
  void HangUp() { write_end_.Reset(-1); }

 private:
  UniqueFd read_end_;
  UniqueFd write_end_;
  bool readable_ = false;
};

struct FakeVerbs::Device {
  FakeDevice shape;
  ibv_device verbs = {};
  CardId id;
};

struct FakeVerbs::Context {
  ibv_context verbs = {};
  Context* context = this;
  Device* device = nullptr;
  Signal signal;
  std::deque<ibv_async_event> events;
  bool removed = false;
  int destroy_error = 0;
};

struct FakeVerbs::Pd {
  ibv_pd verbs = {};
  Context* context = nullptr;
};

struct FakeVerbs::Mr {
  ibv_mr verbs = {};
  Context* context = nullptr;
  FakeRegion region;
};

struct FakeVerbs::Mw {
  ibv_mw verbs = {};
  Context* context = nullptr;
  // The key in the card; the user's copy is in `verbs`.
  uint32_t key = 0;
  // Region the window is bound to; null if none.
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;
};

struct FakeVerbs::Channel {
  ibv_comp_channel verbs = {};
  Context* context = nullptr;
  Signal signal;
  std::deque<ibv_cq*> pending;
};

struct FakeVerbs::Cq {
  struct Entry {
    ibv_wc completion = {};
    // Queue pair, and its number of resets, that gets slots back when this completion is polled.
    uint64_t generation = 0;
    bool receive = false;
    uint64_t slots = 0;
  };
  ibv_cq verbs = {};
  Context* context = nullptr;
  Channel* channel = nullptr;
  std::deque<Entry> entries;
  bool armed = false;
};

struct FakeVerbs::Qp {
  ibv_qp verbs = {};
  Context* context = nullptr;
  ibv_qp_init_attr init = {};
  ibv_qp_state state = IBV_QPS_RESET;
  // Number of resets.
  uint64_t generation = 0;
  uint64_t sends_used = 0;
  uint64_t receives_used = 0;
  // Requests completed without a report since the last reported one.
  uint64_t unreported = 0;
  std::deque<PostedSend> sends;
  std::deque<PostedReceive> receives;
  std::map<ibv_qp_state, std::pair<ibv_qp_attr, int>> transitions;
};

template <typename Record>
Record* FakeVerbs::Find(const Table<Record>& table, const void* object) {
  const auto found = table.find(object);
  return found == table.end() ? nullptr : found->second.get();
}

template <typename Record>
size_t FakeVerbs::CountOf(const Table<Record>& table, const Device& device) {
  return static_cast<size_t>(
      std::ranges::count_if(table, [&](const auto& row) { return row.second->context->device == &device; }));
}

template <typename Record>
Record* FakeVerbs::Add(Table<Record>& table, Context& context) {
  auto record = std::make_shared<Record>();
  record->context = &context;
  record->verbs.context = &context.verbs;
  Record* const answer = record.get();
  table.emplace(&answer->verbs, std::move(record));
  return answer;
}

template <typename Record>
int FakeVerbs::End(Table<Record>& table, const Record& record) {
  const int error = record.context->destroy_error;
  const auto found = table.find(&record.verbs);
  if (error != 0) {
    left_behind_.push_back(found->second);
  }
  table.erase(found);
  return error;
}

}  // namespace rnicd::provider
