#pragma once

#include <vector>

#include "base/ndk/op_flags.h"
#include "tests/bench/in_process.h"

namespace rnicd::bench {

// A core with a connected queue pair, a mapping, and fast-register regions; nothing is reported unless it fails.
class FastQueue {
 public:
  static constexpr uint64_t kMappedPages = 2048;

  // `pages`: pages of one registration. `scattered`: every second page, in reverse order.
  FastQueue(int regions, uint64_t pages, bool scattered) : core_(kMappedPages * kNdkPageBytes) {
    core::Session& session = core_.session();
    const CompletionQueueId queue = *session.Begin()->queues().Create(core_.adapter(), 1024, 0);
    pair_ = *session.Begin()->pairs().Create({.domain = core_.pd(),
                                              .receive_queue = queue,
                                              .initiator_queue = queue,
                                              .limits = {.receive_depth = 1, .initiator_depth = 1024}});
    // The queue pair is connected to itself: fast registration only needs a connection.
    ready_ = session.Begin()->pairs().Connect(pair_, session.Begin()->pairs().Query(pair_)->address).ok();
    MapPages(pages, scattered);
    AddRegions(regions, static_cast<uint32_t>(pages));
  }

  // Registers and invalidates `count` regions from `first` on, in two chains. False when anything is refused.
  bool RegisterAndInvalidate(size_t first, size_t count) {
    return Post(std::span(registers_).subspan(first, count)) && Post(std::span(invalidates_).subspan(first, count));
  }
  bool Register(size_t first, size_t count) { return Post(std::span(registers_).subspan(first, count)); }
  bool InvalidateAndRegister(size_t index) {
    return Post(std::span(invalidates_).subspan(index, 1)) && Post(std::span(registers_).subspan(index, 1));
  }

  InProcess& core() { return core_; }
  bool ready() const { return ready_; }
  MemoryRegionId region(size_t index) const { return regions_[index]; }

 private:
  void MapPages(uint64_t pages, bool scattered) {
    const MdlEntry entry{.memory_id = core_.memory(),
                         .byte_offset = 0,
                         .byte_count = kMappedPages * kNdkPageBytes,
                         .virtual_address = VirtualAddress{kBase}};
    const core::BuiltLam lam = *core_.session().Begin()->mappings().Build(
        {.adapter = core_.adapter(), .chain = {&entry, 1}, .length = entry.byte_count});
    for (uint64_t page = 0; page < pages; ++page) {
      const uint64_t index = scattered ? kMappedPages - 1 - 2 * page : page;
      pages_.push_back(lam.first.value + index * kNdkPageBytes);
    }
  }

  void AddRegions(int count, uint32_t pages) {
    for (int index = 0; index < count; ++index) {
      const MemoryRegionId region = core_.CreateMr(/*fast_register=*/true);
      ready_ = ready_ && core_.session()
                             .Begin()
                             ->regions()
                             .Initialize({.region = region, .max_pages = pages, .remote_access = true}, {}, nullptr)
                             .ok();
      regions_.push_back(region);
      registers_.push_back({.flags = kOpFlagSilentSuccess | kOpFlagRemoteWrite,
                            .operation = WorkRequest::FastRegister{.region = region,
                                                                   .pages = pages_,
                                                                   .length = pages_.size() * kNdkPageBytes,
                                                                   .base_address = VirtualAddress{kBase}}});
      invalidates_.push_back({.flags = kOpFlagSilentSuccess, .operation = WorkRequest::Invalidate{.target = region}});
    }
  }

  bool Post(std::span<const WorkRequest> chain) {
    const auto outcome = core_.session().Begin()->pairs().Post(pair_, chain);
    return outcome.ok() && outcome->posted == chain.size();
  }

  InProcess core_;
  QueuePairId pair_;
  bool ready_ = false;
  std::vector<uint64_t> pages_;
  std::vector<MemoryRegionId> regions_;
  std::vector<WorkRequest> registers_;
  std::vector<WorkRequest> invalidates_;
};

}  // namespace rnicd::bench
