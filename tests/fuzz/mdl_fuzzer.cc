// MDL chains, and the pages and logical addresses that result from them, compared with a naive implementation of the
// same rules: core must accept the same chains, with the same runs, and charge the same pages.
//
// Input: a sequence of steps; each is a byte that selects the action, followed by the action's arguments.

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "daemon/core/region/logical_mapping.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/naive_memory.h"
#include "tests/fuzz/node.h"

namespace rnicd::fuzz {
namespace {

using core::Resource;

constexpr size_t kStepsMax = 48;
constexpr size_t kEntriesMax = 24;
constexpr size_t kPagesMax = 48;
constexpr size_t kMappingsMax = 6;
constexpr size_t kRegionsMax = 4;
constexpr uint64_t kAddress = 0x7f0000000000;
constexpr uint64_t kMemoryPages[] = {1, 2, 5, 16};
// Low enough to be hit.
constexpr uint64_t kPinnedMax = 20 * kNdkPageBytes;
constexpr uint64_t kRegisteredMax = 64 * kNdkPageBytes;
constexpr size_t kAdapters = 2;

// A mapping and its expected pages.
struct Mapping {
  std::shared_ptr<core::LogicalMapping> mapping;
  size_t adapter = 0;
  std::vector<std::byte*> pages;
};

struct Region {
  MemoryRegionId id;
  // Registered pages; empty if not registered.
  std::vector<std::byte*> pages;
};

NodeOptions Options() {
  NodeOptions options;
  options.soft.adapters = kAdapters;
  options.tenant[Resource::kPinnedBytes] = kPinnedMax;
  return options;
}

// One run over an input.
class Mdl {
 public:
  explicit Mdl(Input& input) : input_(input) {
    for (const uint64_t pages : kMemoryPages) {
      AddMemory(pages * kNdkPageBytes, /*sealed=*/true);
    }
    AddMemory(2 * kNdkPageBytes, /*sealed=*/false);
    ids_.push_back(session_->Begin()->memory().Import(kNdkPageBytes)->memory);
    ids_.push_back(MemoryObjectId{});
    for (size_t index = 0; index < kAdapters; ++index) {
      const std::string name = "soft" + std::to_string(index);
      adapters_.push_back(std::make_shared<core::Adapter>(name, *node_.soft.OpenAdapter(name), core::Charge()));
    }
    const ProtectionDomainId domain =
        *session_->Begin()->domains().Create(*session_->Begin()->adapters().Open("soft0", {1, 2}));
    for (size_t index = 0; index < kRegionsMax; ++index) {
      regions_.push_back({*session_->Begin()->regions().Create(domain, false), {}});
    }
  }

  void Run() {
    for (size_t step = 0; step < kStepsMax && !input_.empty(); ++step) {
      Step();
      CheckPaid();
    }
    while (!mappings_.empty()) {
      Release(0);
    }
    adapters_.clear();
    session_.reset();
    node_.EndAll();
    Check(ledger_->used(Resource::kRegisteredBytes) == 0, "nothing is left registered");
  }

 private:
  struct Chain {
    std::vector<MdlEntry> entries;
    uint64_t length = 0;
  };

  void Step() {
    switch (input_.Below(8)) {
      case 0:
      case 1:
        return static_cast<void>(CheckResolve(NextChain()));
      case 2:
        return TryMapping(NextChain());
      case 3:
        return TryRelease();
      case 4:
        return TryPages();
      case 5:
        return TryBytes();
      case 6:
        return TryRegister(NextChain());
      default:
        return TryDeregister();
    }
  }

  void AddMemory(uint64_t bytes, bool sealed) {
    const MemoryObjectId id = node_.Allocate(*session_, bytes, sealed);
    ids_.push_back(id);
    // Only a use gives access to the mapping, and an unsealed object has no use.
    std::byte* const first =
        sealed ? (*session_->Begin()->memory().Find(id))->BeginUse()->object().mapping().data() : nullptr;
    memories_[id] = {.bytes = bytes, .sealed = sealed, .first = first};
  }

  MdlEntry NextEntry(const std::vector<MdlEntry>& before) {
    const uint8_t kind = input_.Byte();
    MdlEntry entry{
        .memory_id = ids_[kind % ids_.size()], .byte_offset = 0, .byte_count = 0, .virtual_address = {kAddress}};
    entry.byte_offset = input_.Number();
    entry.byte_count = input_.Number();
    if (!before.empty()) {
      entry.virtual_address = VirtualAddress{before.back().virtual_address.value + before.back().byte_count};
    }
    if ((kind & 0x40) != 0 && !before.empty()) {
      entry.memory_id = before.back().memory_id;
      entry.byte_offset = before.back().byte_offset + before.back().byte_count;
    }
    if ((kind & 0x80) != 0) {
      entry.virtual_address = VirtualAddress{input_.Number()};
    } else if (before.empty()) {
      entry.virtual_address.value += entry.byte_offset % kNdkPageBytes;
    }
    return entry;
  }

  Chain NextChain() {
    Chain chain;
    const uint8_t shape = input_.Byte();
    uint64_t sum = 0;
    for (size_t index = 0; index < shape % kEntriesMax; ++index) {
      chain.entries.push_back(NextEntry(chain.entries));
      sum += chain.entries.back().byte_count;
    }
    // The exact sum, a little less or more, or any number.
    chain.length = shape < 0x80 ? sum : shape < 0xc0 ? sum + 64 - input_.Byte() : input_.Number();
    return chain;
  }

  absl::StatusOr<core::MappedRange> Resolve(const Chain& chain) {
    return core::ResolveMdlChain(chain.entries, chain.length, [this](MemoryObjectId id) {
      return session_->Begin()->memory().Find(id).value_or(nullptr);
    });
  }

  // Resolves the chain, and checks the result.
  std::optional<NaiveRange> CheckResolve(const Chain& chain) {
    std::optional<NaiveRange> expected = ReadChain(chain.entries, chain.length, memories_);
    const absl::StatusOr<core::MappedRange> range = Resolve(chain);
    Check(range.ok() == expected.has_value(), "a chain is accepted if and only if it keeps the rules");
    if (range.ok()) {
      Check(range->base.value == expected->base && range->length == chain.length, "the range is the requested one");
      Check(SameRuns(range->runs, expected->runs), "its runs are the bytes of its chain");
      Check(range->pages == expected->pages.size(), "its pages are those that it covers");
      Check(range->page_bytes == kNdkPageBytes, "its smallest page is known");
    }
    return expected;
  }

  // Whether the limits allow an owner that has `of_ledger` registered to register these pages too.
  bool MayPay(const NaivePins& of_ledger, uint64_t registered_max, const std::vector<std::byte*>& pages) const {
    return of_ledger.registered() + pages.size() * kNdkPageBytes <= registered_max &&
           all_.pinned() + all_.Fresh(pages) <= kPinnedMax;
  }

  void TryMapping(const Chain& chain) {
    const size_t adapter = input_.Below(kAdapters);
    const std::optional<NaiveRange> expected = CheckResolve(chain);
    if (!expected.has_value() || mappings_.size() == kMappingsMax) {
      return;
    }
    auto taken = core::TakePages(*Resolve(chain), adapters_[adapter]->device(), ledger_);
    Check(taken.ok() == MayPay(mapped_, kRegisteredMax, expected->pages),
          "pages are taken if and only if the limits allow");
    if (!taken.ok()) {
      return;
    }
    Check(taken->pages->pages == expected->pages, "the mapping has the pages of its range");
    const auto mapping = std::make_shared<core::LogicalMapping>(*core::Kept<core::Adapter>::Of(adapters_[adapter]),
                                                                std::move(taken->mapping), taken->pages,
                                                                static_cast<uint32_t>(expected->base % kNdkPageBytes));
    space_.Insert(mapping);
    const uint64_t base = mapping->base().value;
    Check(base % kNdkPageBytes == 0, "logical addresses are aligned to pages");
    // One page past the end: an unmapped page separates two mappings.
    for (uint64_t page = 0; page <= expected->pages.size(); ++page) {
      Check(given_out_.insert(base + page * kNdkPageBytes).second, "a logical address is used only once");
    }
    all_.Add(expected->pages);
    mapped_.Add(expected->pages);
    mappings_.push_back({mapping, adapter, expected->pages});
  }

  void TryRelease() {
    if (!mappings_.empty()) {
      Release(input_.Byte() % mappings_.size());
    }
  }

  void Release(size_t index) {
    const Mapping mapping = mappings_[index];
    mappings_.erase(mappings_.begin() + static_cast<std::ptrdiff_t>(index));
    space_.Remove(*mapping.mapping);
    all_.Remove(mapping.pages);
    mapped_.Remove(mapping.pages);
  }

  // The address of an existing mapping, or any number.
  uint64_t NextLogicalAddress() {
    const uint8_t which = input_.Byte();
    if (which >= 0xc0 || mappings_.empty()) {
      return input_.Number();
    }
    const Mapping& mapping = mappings_[which % mappings_.size()];
    return mapping.mapping->base().value + (which < 0x80 ? input_.Below(16) * kNdkPageBytes : input_.Number());
  }

  // Null if no mapping of the adapter contains the address.
  const Mapping* MappingOf(uint64_t address, size_t adapter) const {
    for (const Mapping& mapping : mappings_) {
      const uint64_t base = mapping.mapping->base().value;
      if (mapping.adapter == adapter && address >= base && address - base < mapping.pages.size() * kNdkPageBytes) {
        return &mapping;
      }
    }
    return nullptr;
  }

  void TryPages() {
    const size_t adapter = input_.Below(kAdapters);
    const size_t count = 1 + input_.Below(kPagesMax);
    std::vector<uint64_t> addresses;
    std::vector<std::byte*> pages;
    for (size_t index = 0; index < count; ++index) {
      const uint64_t address = NextLogicalAddress();
      const Mapping* const mapping = MappingOf(address, adapter);
      addresses.push_back(address);
      if (mapping != nullptr && address % kNdkPageBytes == 0) {
        pages.push_back(mapping->pages[(address - mapping->mapping->base().value) / kNdkPageBytes]);
      }
    }
    const uint64_t skip = input_.Number() % kNdkPageBytes;
    const uint64_t length = 1 + input_.Number() % (count * kNdkPageBytes - skip);
    const auto resolved = space_.ResolvePages(*adapters_[adapter], addresses, skip, length);
    Check(resolved.ok() == (pages.size() == count), "pages resolve if they are in a mapping of the adapter");
    Check(!resolved.ok() || SameRuns(resolved->runs, CutPages(pages, skip, length)), "the runs are those of the pages");
  }

  void TryBytes() {
    const size_t adapter = input_.Below(kAdapters);
    const uint64_t address = NextLogicalAddress();
    const uint64_t length = input_.Number();
    const Mapping* const mapping = MappingOf(address, adapter);
    const uint64_t offset = mapping != nullptr ? address - mapping->mapping->base().value : 0;
    const bool inside = mapping != nullptr && length <= mapping->pages.size() * kNdkPageBytes - offset;
    const auto resolved = space_.ResolveBytes(*adapters_[adapter], LogicalAddress{address}, length);
    Check(resolved.ok() == inside, "bytes resolve if they are in one mapping");
    if (inside) {
      const std::vector<std::byte*> pages(mapping->pages.begin() + static_cast<std::ptrdiff_t>(offset / kNdkPageBytes),
                                          mapping->pages.end());
      Check(SameRuns(resolved->runs, CutPages(pages, offset % kNdkPageBytes, length)), "the runs are those bytes");
    }
  }

  void TryRegister(const Chain& chain) {
    Region& region = regions_[input_.Below(kRegionsMax)];
    const std::optional<NaiveRange> expected = CheckResolve(chain);
    const bool may = expected.has_value() && region.pages.empty() && MayPay(registered_, UINT64_MAX, expected->pages);
    const auto registered = session_->Begin()->regions().Register(
        {.region = region.id, .chain = chain.entries, .length = chain.length, .flags = kMrFlagRemoteWrite}, {},
        nullptr);
    Check(registered.ok() == may, "a region is registered if and only if the limits allow");
    if (may) {
      Check(registered.outcome()->base_address.value == expected->base, "where the chain begins");
      region.pages = expected->pages;
      all_.Add(region.pages);
      registered_.Add(region.pages);
    }
  }

  void TryDeregister() {
    Region& region = regions_[input_.Below(kRegionsMax)];
    Check(session_->Begin()->regions().Deregister(region.id, {}, nullptr).ok() == !region.pages.empty(),
          "what is registered can be deregistered");
    all_.Remove(region.pages);
    registered_.Remove(region.pages);
    region.pages.clear();
  }

  void CheckPaid() const {
    Check(session_->ledger().used(Resource::kPinnedBytes) == all_.pinned(), "each page is charged once");
    Check(session_->tenant().ledger()->used(Resource::kPinnedBytes) == all_.pinned(), "by the tenant too");
    Check(node_.ledger->used(Resource::kPinnedBytes) == all_.pinned(), "and by the node");
    Check(ledger_->used(Resource::kRegisteredBytes) == mapped_.registered(), "mapped pages are counted");
    Check(session_->ledger().used(Resource::kRegisteredBytes) == registered_.registered(), "registered pages too");
  }

  static std::shared_ptr<core::Ledger> NewLedger() {
    core::Limits limits;
    limits[Resource::kRegisteredBytes] = kRegisteredMax;
    return std::make_shared<core::Ledger>(limits, nullptr);
  }

  Input& input_;
  FuzzNode node_{Options()};
  std::shared_ptr<core::Session> session_ = node_.Open(1);
  // Ledger of the mappings, which are built here as Session::BuildLam does, so that their addresses can be looked up.
  const std::shared_ptr<core::Ledger> ledger_ = NewLedger();
  core::LogicalAddressSpace space_{1};
  std::vector<std::shared_ptr<core::Adapter>> adapters_;
  std::vector<MemoryObjectId> ids_;
  NaiveMemories memories_;
  std::vector<Mapping> mappings_;
  std::vector<Region> regions_;
  std::set<uint64_t> given_out_;
  NaivePins all_;
  NaivePins mapped_;
  NaivePins registered_;
};

}  // namespace
}  // namespace rnicd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rnicd::fuzz::Input input(data, size);
  rnicd::fuzz::Mdl(input).Run();
  return 0;
}
