#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/ndk/work_request.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/queue_side.h"

namespace rnicd::fuzz {

// A chain of work requests, read from the fuzzer's bytes: usually existing objects, with addresses near their ends, and
// occasionally arbitrary numbers.
class ChainInput {
 public:
  // `context`: of the last request posted so far; incremented for each request. All arguments must outlive the chain.
  ChainInput(Input& input, const QueueSide& owner, const QueueSide& peer, uint64_t& context);

  std::span<const WorkRequest> requests() const { return requests_; }

 private:
  WorkRequest NextRequest();
  Sge NextSge();
  Sges NextSges();
  uint32_t NextFlags();
  LocalToken NextLocalToken();
  RemoteToken NextRemoteToken();
  VirtualAddress NextRemoteAddress();
  MemoryRegionId NextRegion();
  WorkRequest::FastRegister NextFastRegister();
  WorkRequest::Invalidate NextInvalidate();
  WorkRequest::Bind NextBind();

  Input& input_;
  const QueueSide& owner_;
  const QueueSide& peer_;
  // Inline data that the requests point to.
  std::deque<std::string> texts_;
  std::deque<std::vector<uint64_t>> page_arrays_;
  std::vector<WorkRequest> requests_;
};

}  // namespace rnicd::fuzz
