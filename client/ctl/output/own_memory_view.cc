#include "client/ctl/line/units.h"
#include "client/ctl/output/table.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {

namespace {

std::string PagesText(const OwnMemory& memory) {
  return FormatBytes(memory.page_bytes) + (memory.transparent_huge_pages ? ", maybe transparent huge pages" : "") +
         (memory.from_pool ? ", ready in the pool" : "");
}

}  // namespace

std::string ProgressLine(uint64_t done, uint64_t size) {
  constexpr uint64_t kCells = 40;
  const uint64_t filled =
      size == 0 ? 0 : static_cast<uint64_t>(static_cast<double>(done) / static_cast<double>(size) * kCells);
  return "allocating [" + std::string(filled, '#') + std::string(kCells - filled, '.') + "] " + FormatBytes(done) +
         " of " + FormatBytes(size);
}

std::string OwnMemoryText(const OwnMemory& memory) {
  std::string facts = KeyValueLines({
      {"session", std::to_string(memory.session_id)},
      {"memory", std::to_string(memory.memory_id)},
      {"origin", memory.imported ? "imported" : "allocated"},
      {"address", FormatAddress(memory.address)},
      {"size", FormatBytes(memory.size)},
      {"page size", PagesText(memory)},
  });
  if (memory.regions.empty()) {
    return facts;
  }
  Table table({{"REGION", Align::kRight},
               {"BASE ADDRESS"},
               {"LENGTH", Align::kRight},
               {"LOCAL TOKEN"},
               {"REMOTE TOKEN"},
               {"FLAGS"}});
  for (const OwnRegion& region : memory.regions) {
    table.AddRow({std::to_string(region.mr_id), FormatAddress(region.base_virtual_address), FormatBytes(region.length),
                  FormatToken(region.local_token), FormatToken(region.remote_token), MrFlagNames(memory.flags)});
  }
  return facts + "\n" + table.Text();
}

Json OwnMemoryJson(const OwnMemory& memory) {
  Json json = {{"session_id", std::to_string(memory.session_id)},
               {"memory",
                {{"memory_id", std::to_string(memory.memory_id)},
                 {"imported", memory.imported},
                 {"address", FormatAddress(memory.address)},
                 {"size", memory.size},
                 {"page_size", memory.page_bytes},
                 {"transparent_huge_pages", memory.transparent_huge_pages},
                 {"from_pool", memory.from_pool}}}};
  if (!memory.regions.empty()) {
    json["regions"] = Json::array();
  }
  for (const OwnRegion& region : memory.regions) {
    json["regions"].push_back({{"mr_id", std::to_string(region.mr_id)},
                               {"base_virtual_address", FormatAddress(region.base_virtual_address)},
                               {"length", region.length},
                               {"local_token", region.local_token},
                               {"remote_token", region.remote_token},
                               {"flags", memory.flags}});
  }
  return json;
}

}  // namespace rnicd::ctl
