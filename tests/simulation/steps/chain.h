#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/core/memory/mdl_chain.h"
#include "tests/simulation/model/scene.h"

namespace rnicd::simulation {

// An MDL chain as a client passes it.
struct Chain {
  std::vector<MdlEntry> entries;
  uint64_t length = 0;

  std::string Text() const;
};
// True if the client has memory that a chain may name.
bool HasSealed(const Client& client);
Chain DrawChain(const Scene& scene, const Client& client);

// A validated chain. Without refusals: its bytes, the pages that contain them, in order, and the uses that keep them.
struct CheckedChain {
  Refusals why;
  uint64_t base = 0;
  uint64_t length = 0;
  Pieces pieces;
  std::vector<MappedPages::Page> pages;
  std::vector<MemoryUse> uses;
  // Pieces that do not adjoin the one before.
  uint64_t runs = 0;
};
CheckedChain CheckChain(const Client& client, const Chain& chain);

// The same pages, named by file and page number.
std::vector<FilePage> InFiles(const std::vector<MappedPages::Page>& pages);

}  // namespace rnicd::simulation
