// The kernel module alone: what a request costs in it, and a page that it maps for the card.
#include <algorithm>
#include <chrono>

#include "tests/vm/bench/rows.h"
#include "tests/vm/fr/module.h"

namespace rnicd::vm_bench {
namespace {

constexpr uint32_t kChain = 64;
constexpr uint32_t kPageCounts[] = {1, 16, 256};
constexpr uint32_t kPagesMax = std::ranges::max(kPageCounts);
// Pages that the daemon has the module map at a time.
constexpr uint32_t kBlock = 64;

// A chain that registers, then one that invalidates, every region with pages that are not neighbours.
class Chains {
 public:
  Chains(Domain& domain, uint32_t pages) : domain_(domain), memory_(2 * kPagesMax) {
    uint32_t mapping = 0;
    Require(domain_.Map(memory_, mapping) == 0, "the module does not map pages");
    for (uint32_t page = 0; page < pages; ++page) {
      runs_.push_back({.mapping = mapping, .page = 2 * (pages - 1 - page), .count = 1, .reserved = 0});
    }
    for (uint32_t index = 0; index < kChain; ++index) {
      rnicd_fr_create_region region = {};
      Require(domain_.CreateRegion(pages, region) == 0, "the module makes no region");
      registers_.push_back(RegisterOp({.region = region.region, .length = pages * kPage}, 0, pages));
      invalidates_.push_back(InvalidateOp(region.region, 0, 0));
    }
  }

  void Run() {
    Submit(registers_, runs_);
    Submit(invalidates_, {});
  }

 private:
  void Submit(std::vector<rnicd_fr_op>& ops, std::span<rnicd_fr_run> runs) {
    Require(domain_.Submit(ops, runs) == 0 &&
                std::ranges::all_of(ops, [](const rnicd_fr_op& op) { return op.result == 0; }),
            "the module refuses a chain");
  }

  Domain& domain_;
  Pages memory_;
  std::vector<rnicd_fr_run> runs_;
  std::vector<rnicd_fr_op> registers_;
  std::vector<rnicd_fr_op> invalidates_;
};

nlohmann::json RequestRow(Domain& domain, uint32_t pages) {
  Chains chains(domain, pages);
  return Row("module", {{"pages", pages}, {"chain", kChain}},
             Measure({{.name = "request", .run = [&chains] { chains.Run(); }, .operations = 2 * kChain}}));
}

// Microseconds a page.
nlohmann::json MapRow(const Descriptor& control, const Card& card) {
  const Pages memory(kMappedBytes / kPage);
  const auto domain = std::make_unique<Domain>(control.number(), card);
  std::vector<uint32_t> mappings(kMappedBytes / kPage / kBlock);
  const auto map = [&] {
    for (uint32_t index = 0; index < mappings.size(); ++index) {
      Require(domain->Map(memory.address() + uint64_t{index} * kBlock * kPage, kBlock * kPage, mappings[index]) == 0,
              "the module does not map a block");
    }
  };
  const auto unmap = [&] {
    for (const uint32_t mapping : mappings) {
      Require(domain->Unmap(mapping) == 0, "the module does not unmap a block");
    }
  };
  return Row("module_map", {{"bytes", kMappedBytes}, {"block", kBlock}},
             Measure({{.name = "page", .run = map, .operations = double{kMappedBytes / kPage}, .put_back = unmap}},
                     {.rounds_min = 5}));
}

}  // namespace

nlohmann::json ModuleRows() {
  const Descriptor control(OpenControl());
  Require(control.number() >= 0, "the kernel module is not loaded");
  const Card card(kCard);
  nlohmann::json rows = nlohmann::json::array();
  for (const uint32_t pages : kPageCounts) {
    Domain domain(control.number(), card);
    rows.push_back(RequestRow(domain, pages));
  }
  rows.push_back(MapRow(control, card));
  return rows;
}

}  // namespace rnicd::vm_bench
