#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ndk/post_outcome.h"
#include "base/ndk/work_request.h"
#include "client/c/rnicd.h"

namespace rnicd::c {

// The requests of an rnicd_chain. What a request took of memory serves the one of the same number after Clear, so that
// a chain that is used again allocates nothing.
class ReusedRequests {
 public:
  // A request that is being added: Add takes it, and without that there is nothing new.
  class Draft {
   public:
    explicit Draft(ReusedRequests& owner);
    // Copies of the SGEs.
    Sges SgesOf(std::span<const rnicd_sge> sges);
    // One SGE of a copy of the bytes; none without bytes.
    Sges InlineSgesOf(std::span<const std::byte> bytes);
    // A copy of the pages.
    std::span<const uint64_t> PagesOf(std::span<const uint64_t> pages);
    void Add(WorkRequest::Operation operation, uint32_t flags, uint64_t context);

   private:
    ReusedRequests& owner_;
  };

  void Clear() { count_ = 0; }
  std::span<const WorkRequest> all() const { return std::span(requests_).first(count_); }

  // Outcome of the last post.
  void SetOutcome(PostOutcome outcome) { outcome_ = std::move(outcome); }
  const PostOutcome& outcome() const { return outcome_; }

 private:
  // What the request of the same number has views into.
  struct Kept {
    std::vector<std::byte> bytes;
    std::vector<uint64_t> pages;
  };

  // The first `count_` are in use.
  std::vector<WorkRequest> requests_;
  std::vector<Kept> kept_;
  size_t count_ = 0;
  PostOutcome outcome_;
};

}  // namespace rnicd::c

struct rnicd_chain {
  rnicd::c::ReusedRequests requests;
};
