#include "client/ctl/mr_flags.h"
#include "client/ctl/table.h"
#include "client/ctl/units.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {

std::string OwnMemoryText(const OwnMemory& memory) {
  const std::string facts = KeyValueLines({
      {"session", std::to_string(memory.session_id)},
      {"memory", std::to_string(memory.memory_id)},
      {"origin", memory.imported ? "imported" : "allocated"},
      {"address", FormatAddress(memory.address)},
      {"size", FormatBytes(memory.size)},
      {"page size", FormatBytes(memory.page_bytes)},
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
                 {"page_size", memory.page_bytes}}}};
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
