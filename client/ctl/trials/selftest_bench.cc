#include "client/ctl/trials/selftest_checks.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "client/ctl/line/units.h"
#include "client/ctl/trials/demo_pages.h"

namespace rnicd::ctl {
namespace {

constexpr std::chrono::milliseconds kTimeOfARow{500};
constexpr size_t kRoundsMin = 5;
constexpr size_t kRoundsMax = 2000;
// FastRegister and Invalidate in turn, so that one region serves all of them.
constexpr uint32_t kPairsOfAChain = 32;

using Times = std::vector<double>;

// Repeats `round`, and returns the microseconds of each, in ascending order. The first is not counted.
absl::StatusOr<Times> Repeat(const std::function<absl::Status()>& round) {
  RNICD_RETURN_IF_ERROR(round());
  Times times;
  const Instant end = Instant::clock::now() + kTimeOfARow;
  for (Instant began = Instant::clock::now();
       times.size() < kRoundsMin || (began < end && times.size() < kRoundsMax);) {
    RNICD_RETURN_IF_ERROR(round());
    const Instant now = Instant::clock::now();
    times.push_back(std::chrono::duration<double, std::micro>(now - began).count());
    began = now;
  }
  std::ranges::sort(times);
  return times;
}

// A region is created, registered, deregistered and closed.
absl::StatusOr<Times> Registration(SelftestScene& scene, uint64_t bytes) {
  RNICD_ASSIGN_OR_RETURN(const Memory memory, Memory::Allocate(scene.owner(), {.size = bytes}));
  return Repeat([&memory]() -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(MemoryRegion region, MemoryRegion::Register(memory, kMrFlagRemoteRead | kMrFlagRemoteWrite));
    return region.Close();
  });
}

// A chain of fast registrations of scattered pages, each invalidated by the request behind it.
absl::StatusOr<Times> FastRegistrations(SelftestScene& scene, uint32_t pages) {
  RNICD_ASSIGN_OR_RETURN(const Memory memory, Memory::Allocate(scene.owner(), {.size = pages * kSelftestPageBytes}));
  RNICD_ASSIGN_OR_RETURN(const LogicalMapping mapping, LogicalMapping::Build(memory));
  RNICD_ASSIGN_OR_RETURN(const FastRegion region,
                         FastRegion::Create(scene.owner(), {.max_pages = pages, .remote_access = true}));
  FastRegistration registration = mapping.AsRegistration();
  for (size_t index = 0; const size_t page : ShuffledOrder(pages, 1)) {
    registration.pages[index++] = mapping.pages()[page];
  }
  WorkChain chain;
  for (uint32_t pair = 0; pair < kPairsOfAChain; ++pair) {
    chain.FastRegister(region, registration, {.flags = kOpFlagRemoteRead | kOpFlagRemoteWrite}).Invalidate(region, {});
  }
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, scene.Connect(2 * kPairsOfAChain));
  return Repeat([&link, &chain]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(link.owner.Post(chain).status());
    for (size_t finished = 0; finished < chain.size(); ++finished) {
      RNICD_ASSIGN_OR_RETURN(const Completion completion, link.owner.Finish());
      if (!completion.ok()) {
        return SelftestWrong("ended with " + std::string(NtStatusName(completion.status)));
      }
    }
    return absl::OkStatus();
  });
}

// A write of the peer, until its completion is read.
absl::StatusOr<Times> Write(SelftestScene& scene, uint64_t bytes) {
  const AllocateOptions size{.size = std::max(bytes, kSelftestPageBytes)};
  RNICD_ASSIGN_OR_RETURN(const Memory memory, Memory::Allocate(scene.owner(), size));
  RNICD_ASSIGN_OR_RETURN(const MemoryRegion region, MemoryRegion::Register(memory, kMrFlagRemoteWrite));
  RNICD_ASSIGN_OR_RETURN(const Memory buffer, Memory::Allocate(scene.peer(), size));
  RNICD_ASSIGN_OR_RETURN(const MemoryRegion source, MemoryRegion::Register(buffer, 0));
  RNICD_ASSIGN_OR_RETURN(SelftestLink link, scene.Connect());
  const WorkChain chain = WorkChain().Write({Sge::Of(buffer.bytes().first(bytes), source.local_token())},
                                            {.address = region.base_address(), .token = region.remote_token()}, {});
  return Repeat([&link, &chain] { return link.peer.Run(chain, "a write"); });
}

struct Row {
  std::string what;
  // How often one round does what is measured.
  uint32_t count = 1;
  std::function<absl::StatusOr<Times>(SelftestScene&)> measure;
};

std::vector<Row> Rows() {
  std::vector<Row> rows;
  for (const uint64_t bytes : {kSelftestPageBytes, uint64_t{1} << 20, uint64_t{16} << 20}) {
    rows.push_back({.what = "a region of " + FormatBytes(bytes) + " created, registered and closed",
                    .measure = [bytes](SelftestScene& scene) { return Registration(scene, bytes); }});
  }
  for (const uint32_t pages : {1u, 16u, 256u}) {
    rows.push_back({.what = "a fast registration of " + Counted(pages, "scattered page") + ", and its invalidation",
                    .count = kPairsOfAChain,
                    .measure = [pages](SelftestScene& scene) { return FastRegistrations(scene, pages); }});
  }
  for (const uint64_t bytes : {uint64_t{64}, uint64_t{64} << 10, uint64_t{1} << 20}) {
    rows.push_back({.what = "a write of " + FormatBytes(bytes) + ", until its completion is read",
                    .measure = [bytes](SelftestScene& scene) { return Write(scene, bytes); }});
  }
  return rows;
}

SelftestTiming Measure(const Row& row, SelftestScene& scene) {
  const absl::StatusOr<Times> times = row.measure(scene);
  if (!times.ok()) {
    return {.what = row.what, .message = std::string(times.status().message())};
  }
  const auto at = [&](size_t percent) { return (*times)[(times->size() - 1) * percent / 100] / row.count; };
  return {.what = row.what, .p50_us = at(50), .p99_us = at(99), .rounds = times->size()};
}

}  // namespace

void RunSelftestBench(SelftestScene& scene, const std::function<void(SelftestTiming)>& on_timing) {
  for (const Row& row : Rows()) {
    on_timing(Measure(row, scene));
  }
}

}  // namespace rnicd::ctl
