#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/core/mdl_chain.h"
#include "tests/simulation/scene.h"

namespace rnicd::simulation {

// An MDL chain as a client gives it.
struct Chain {
  std::vector<core::MdlEntry> entries;
  uint64_t length = 0;

  std::string Text() const;
};
// Whether the tenant has memory that a chain may name.
bool HasSealed(const Tenant& tenant);
Chain DrawChain(const Scene& scene, const Tenant& tenant);

// What the chain comes to. Without refusals: the bytes, and the uses that keep them.
struct JudgedChain {
  Refusals why;
  uint64_t base = 0;
  uint64_t length = 0;
  uint64_t pages = 0;
  Pieces pieces;
  std::vector<MemoryUse> uses;
};
JudgedChain JudgeChain(const Tenant& tenant, const Chain& chain);

// The pages that the bytes of a sound chain lie in, in order.
std::vector<MappedPages::Page> PagesOf(const JudgedChain& chain);

}  // namespace rnicd::simulation
