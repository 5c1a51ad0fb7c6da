#include "tests/fuzz/naive_memory.h"

#include <algorithm>
#include <set>

#include "base/units.h"

namespace rnicd::fuzz {
namespace {

// For a count that is not 0. The end may be 2^64.
bool EndsBeyond(uint64_t start, uint64_t count) { return count - 1 > UINT64_MAX - start; }

bool IsSound(const MdlEntry& entry, const NaiveMemories& memories) {
  const auto memory = memories.find(entry.memory_id);
  return entry.byte_count != 0 && entry.virtual_address.value != 0 &&
         !EndsBeyond(entry.virtual_address.value, entry.byte_count) &&
         !EndsBeyond(entry.byte_offset, entry.byte_count) &&
         entry.virtual_address.value % kNdkPageBytes == entry.byte_offset % kNdkPageBytes && memory != memories.end() &&
         memory->second.sealed && entry.byte_offset <= memory->second.bytes &&
         entry.byte_count <= memory->second.bytes - entry.byte_offset;
}

bool AdjoinsInMemory(const MdlEntry& entry, const MdlEntry& previous) {
  return entry.memory_id == previous.memory_id && entry.byte_offset == previous.byte_offset + previous.byte_count;
}

bool Follows(const MdlEntry& entry, const MdlEntry& previous) {
  return entry.virtual_address.value == previous.virtual_address.value + previous.byte_count &&
         (AdjoinsInMemory(entry, previous) || entry.virtual_address.value % kNdkPageBytes == 0);
}

// Adds the pages under a piece of memory; the first one may already be in the list.
void AddPages(std::vector<std::byte*>& pages, std::byte* first, uint64_t skip, uint64_t count, bool shares_page) {
  for (uint64_t page = 0; page * kNdkPageBytes < skip + count; ++page) {
    if (page > 0 || !shares_page) {
      pages.push_back(first - skip + page * kNdkPageBytes);
    }
  }
}

}  // namespace

std::optional<NaiveRange> ReadChain(std::span<const MdlEntry> chain, uint64_t length, const NaiveMemories& memories) {
  const auto is_sound = [&](const MdlEntry& entry) { return IsSound(entry, memories); };
  if (length == 0 || chain.empty() || chain.size() > core::kMaxMdlEntries ||
      !std::all_of(chain.begin(), chain.end(), is_sound)) {
    return std::nullopt;
  }
  NaiveRange range{.base = chain.front().virtual_address.value, .runs = {}, .pages = {}};
  uint64_t left = length;
  for (size_t index = 0; index < chain.size() && left > 0; ++index) {
    const MdlEntry& entry = chain[index];
    if (index > 0 && !Follows(entry, chain[index - 1])) {
      return std::nullopt;
    }
    const bool adjoins = index > 0 && AdjoinsInMemory(entry, chain[index - 1]);
    const uint64_t count = std::min(entry.byte_count, left);
    std::byte* const first = memories.at(entry.memory_id).first + entry.byte_offset;
    const uint64_t skip = entry.byte_offset % kNdkPageBytes;
    AddPages(range.pages, first, skip, count, adjoins && skip != 0);
    if (adjoins) {
      range.runs.back() = {range.runs.back().data(), range.runs.back().size() + count};
    } else {
      range.runs.emplace_back(first, count);
    }
    left -= count;
  }
  return left == 0 ? std::optional(range) : std::nullopt;
}

Runs CutPages(const std::vector<std::byte*>& pages, uint64_t skip, uint64_t length) {
  Runs runs;
  for (std::byte* const page : pages) {
    const uint64_t count = std::min(kNdkPageBytes - skip, length);
    if (count > 0 && !runs.empty() && runs.back().data() + runs.back().size() == page + skip) {
      runs.back() = {runs.back().data(), runs.back().size() + count};
    } else if (count > 0) {
      runs.emplace_back(page + skip, count);
    }
    length -= count;
    skip = 0;
  }
  return runs;
}

bool SameRuns(std::span<const std::span<std::byte>> one, std::span<const std::span<std::byte>> other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](auto a, auto b) { return a.data() == b.data() && a.size() == b.size(); });
}

void NaivePins::Add(const std::vector<std::byte*>& pages) {
  for (std::byte* const page : pages) {
    ++times_[page];
    registered_ += kNdkPageBytes;
  }
}

void NaivePins::Remove(const std::vector<std::byte*>& pages) {
  for (std::byte* const page : pages) {
    --times_[page];
    registered_ -= kNdkPageBytes;
  }
}

uint64_t NaivePins::pinned() const {
  const auto is_pinned = [](const auto& entry) { return entry.second > 0; };
  return static_cast<uint64_t>(std::count_if(times_.begin(), times_.end(), is_pinned)) * kNdkPageBytes;
}

uint64_t NaivePins::Fresh(const std::vector<std::byte*>& pages) const {
  std::set<std::byte*> fresh;
  for (std::byte* const page : pages) {
    const auto found = times_.find(page);
    if (found == times_.end() || found->second == 0) {
      fresh.insert(page);
    }
  }
  return fresh.size() * kNdkPageBytes;
}

}  // namespace rnicd::fuzz
