#include "daemon/core/region/holdings.h"

#include <algorithm>

namespace rnicd::core {
namespace {

// Returns the row for which `same` holds; adds `fresh` when there is none.
template <typename Row, typename Same>
Row& FindOrAdd(std::vector<Row>& rows, const Same& same, Row fresh) {
  const auto found = std::find_if(rows.begin(), rows.end(), same);
  return found != rows.end() ? *found : rows.emplace_back(std::move(fresh));
}

}  // namespace

void Holdings::AddPages(std::string_view adapter, PageUse use, uint64_t page_bytes, uint64_t count) {
  const auto same = [&](const Pages& row) {
    return row.adapter == adapter && row.use == use && row.page_bytes == page_bytes;
  };
  FindOrAdd(pages, same, Pages{.adapter = std::string(adapter), .use = use, .page_bytes = page_bytes}).count += count;
}

void Holdings::AddRegion(std::string_view adapter, bool fast_register) {
  const auto same = [&](const Regions& row) { return row.adapter == adapter && row.fast_register == fast_register; };
  ++FindOrAdd(regions, same, Regions{.adapter = std::string(adapter), .fast_register = fast_register}).count;
}

void Holdings::AddQueuePair(std::string_view adapter, QueuePairState state) {
  const auto same = [&](const QueuePairs& row) { return row.adapter == adapter && row.state == state; };
  ++FindOrAdd(queue_pairs, same, QueuePairs{.adapter = std::string(adapter), .state = state}).count;
}

}  // namespace rnicd::core
