#include "tests/simulation/steps/chain.h"

#include <algorithm>

#include "base/units.h"

namespace rnicd::simulation {
namespace {

uint64_t PageOffset(uint64_t value) { return value % kNdkPageBytes; }

// The end may be 2^64.
bool EndPassesAll(uint64_t start, uint64_t count) { return count != 0 && count - 1 > UINT64_MAX - start; }

std::shared_ptr<Memory> PickSealed(const Scene& scene, const Client& client) {
  std::vector<std::shared_ptr<Memory>> sealed;
  for (const auto& memory : client.memories) {
    if (memory->state == Memory::State::kSealed) {
      sealed.push_back(memory);
    }
  }
  return sealed.empty() ? nullptr : scene.dice.Pick(sealed);
}

// Usually breaks one rule of the chain.
void Spoil(const Scene& scene, const Client& client, Chain& chain) {
  Dice& dice = scene.dice;
  MdlEntry& entry = chain.entries[dice.Below(chain.entries.size())];
  switch (dice.Below(11)) {
    case 0:
      entry.byte_count = 0;
      return;
    case 1:
      entry.virtual_address.value = 0;
      return;
    case 2:
      entry.virtual_address.value = UINT64_MAX - PageOffset(~entry.virtual_address.value);
      return;
    case 3:
      entry.byte_offset = UINT64_MAX - dice.Below(8 * kNdkPageBytes);
      return;
    case 4:
      entry.virtual_address.value += dice.Between(1, kNdkPageBytes);
      return;
    case 5:
      entry.byte_offset += dice.Between(1, 2 * kNdkPageBytes);
      return;
    case 6:
      entry.byte_count += dice.Between(1, 4 * kNdkPageBytes);
      return;
    case 7:
      entry.memory_id = PickId(scene, client, &Client::memories);
      return;
    case 8:
      chain.length = 0;
      return;
    case 9:
      chain.length += dice.Between(1, 3 * kNdkPageBytes);
      return;
    default:
      chain.entries.clear();
      return;
  }
}

std::shared_ptr<Memory> CheckEntry(const Client& client, const MdlEntry& entry, Refusals& why) {
  why.If(entry.byte_count == 0, ErrorReason::MDL_ENTRY_EMPTY);
  why.If(entry.virtual_address.value == 0, ErrorReason::MDL_ADDRESS_ZERO);
  why.If(
      EndPassesAll(entry.virtual_address.value, entry.byte_count) || EndPassesAll(entry.byte_offset, entry.byte_count),
      ErrorReason::MDL_RANGE_OVERFLOW);
  why.If(PageOffset(entry.virtual_address.value) != PageOffset(entry.byte_offset), ErrorReason::MDL_NOT_PAGE_CONGRUENT);
  std::shared_ptr<Memory> memory = FindMemory(client, entry.memory_id);
  if (memory == nullptr) {
    why.If(true, ErrorReason::OBJECT_NOT_FOUND);
    return nullptr;
  }
  why.If(memory->state == Memory::State::kAwaitingFile, ErrorReason::MEMORY_NOT_ATTACHED);
  why.If(memory->state == Memory::State::kAwaitingFetch || memory->state == Memory::State::kAttached ||
             memory->state == Memory::State::kSealing,
         ErrorReason::MEMORY_NOT_SEALED);
  why.If(entry.byte_offset > memory->bytes || entry.byte_count > memory->bytes - entry.byte_offset,
         ErrorReason::MDL_RANGE_OUTSIDE_MEMORY);
  return memory;
}

bool Adjoin(const MdlEntry& before, const MdlEntry& entry) {
  return before.memory_id == entry.memory_id && before.byte_offset + before.byte_count == entry.byte_offset;
}

void CheckSeam(const MdlEntry& before, const MdlEntry& entry, Refusals& why) {
  why.If(entry.virtual_address.value - before.virtual_address.value != before.byte_count, ErrorReason::MDL_CHAIN_GAP);
  why.If(!Adjoin(before, entry) && PageOffset(entry.virtual_address.value) != 0, ErrorReason::MDL_NOT_PAGE_CONGRUENT);
}

// The pages that contain the bytes of a valid chain.
std::vector<MappedPages::Page> PagesOf(const CheckedChain& chain) {
  std::vector<MappedPages::Page> pages;
  uint64_t address = chain.base;
  for (const Piece& piece : chain.pieces) {
    uint64_t done = 0;
    while (done < piece.length) {
      const uint64_t in_page = PageOffset(address + done);
      if (in_page == 0 || pages.empty()) {
        pages.push_back({.memory = piece.memory, .offset = piece.offset + done - in_page});
      }
      done += std::min(kNdkPageBytes - in_page, piece.length - done);
    }
    address += piece.length;
  }
  return pages;
}

}  // namespace

bool HasSealed(const Client& client) {
  return std::any_of(client.memories.begin(), client.memories.end(),
                     [](const auto& memory) { return memory->state == Memory::State::kSealed; });
}

std::string Chain::Text() const {
  std::string text = "chain of " + std::to_string(entries.size());
  for (const MdlEntry& entry : entries) {
    text += " [" + std::to_string(entry.byte_offset) + "+" + std::to_string(entry.byte_count) + "]";
  }
  return text + " length " + std::to_string(length);
}

Chain DrawChain(const Scene& scene, const Client& client) {
  Dice& dice = scene.dice;
  Chain chain;
  std::shared_ptr<Memory> memory = PickSealed(scene, client);
  uint64_t address = (dice.Between(1, 1 << 20) << 12) + (uint64_t{0x7f} << 40);
  uint64_t offset = 0;
  if (memory != nullptr && dice.Chance(50)) {
    offset = dice.Below(memory->bytes);
    address += PageOffset(offset);
  }
  const uint64_t entries = dice.Chance(70) ? 1 : dice.Between(2, 3);
  for (uint64_t index = 0; index < entries; ++index) {
    const uint64_t rest = memory != nullptr ? memory->bytes - offset : kNdkPageBytes;
    const bool last = index + 1 == entries;
    // A piece of another memory object can follow only at the end of a page.
    const bool adjoin = !last && rest > 1 && dice.Chance(40);
    const uint64_t count = last || adjoin ? dice.Between(1, std::max<uint64_t>(rest - (adjoin ? 1 : 0), 1)) : rest;
    chain.entries.push_back({.memory_id = memory != nullptr ? memory->id : MemoryObjectId{dice.Next()},
                             .byte_offset = offset,
                             .byte_count = count,
                             .virtual_address = VirtualAddress{address}});
    chain.length += count;
    address += count;
    offset = adjoin ? offset + count : 0;
    memory = adjoin ? memory : PickSealed(scene, client);
  }
  if (dice.Chance(20)) {
    chain.length = dice.Between(1, chain.length);
  }
  if (scene.Careless()) {
    Spoil(scene, client, chain);
  }
  return chain;
}

CheckedChain CheckChain(const Client& client, const Chain& chain) {
  CheckedChain checked{.length = chain.length};
  checked.why.If(chain.length == 0, ErrorReason::LENGTH_ZERO);
  checked.why.If(chain.entries.empty(), ErrorReason::MDL_CHAIN_EMPTY);
  uint64_t covered = 0;
  for (size_t index = 0; index < chain.entries.size(); ++index) {
    const MdlEntry& entry = chain.entries[index];
    const std::shared_ptr<Memory> memory = CheckEntry(client, entry, checked.why);
    if (covered < chain.length) {
      if (index > 0) {
        CheckSeam(chain.entries[index - 1], entry, checked.why);
      }
      checked.runs += index > 0 && Adjoin(chain.entries[index - 1], entry) ? 0 : 1;
      const uint64_t count = std::min(entry.byte_count, chain.length - covered);
      checked.pieces.push_back({.memory = memory.get(), .offset = entry.byte_offset, .length = count});
      covered += count;
    }
    if (memory != nullptr) {
      checked.uses.emplace_back(memory);
    }
  }
  checked.why.If(covered < chain.length, ErrorReason::LENGTH_ABOVE_CHAIN);
  if (checked.why.none()) {
    checked.base = chain.entries.front().virtual_address.value;
    checked.pages = PagesOf(checked);
  } else {
    checked.uses.clear();
  }
  return checked;
}

std::vector<FilePage> InFiles(const std::vector<MappedPages::Page>& pages) {
  std::vector<FilePage> in_files;
  for (const MappedPages::Page& page : pages) {
    in_files.push_back(page.in_file());
  }
  return in_files;
}

}  // namespace rnicd::simulation
