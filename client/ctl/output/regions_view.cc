#include "client/ctl/line/units.h"
#include "client/ctl/output/table.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {

std::string RegionsText(const std::vector<v1::RegionInfo>& regions, ItemGenerations generations) {
  Table table({{"SESSION", Align::kRight},
               {"REGION", Align::kRight},
               {"PID", Align::kRight},
               {"UID", Align::kRight},
               {"ADAPTER"},
               {"KIND"},
               {"STATE"},
               {"BASE ADDRESS"},
               {"LENGTH", Align::kRight},
               {"PAGES", Align::kRight},
               {"PAGE SIZE", Align::kRight},
               {"FLAGS"}});
  for (const v1::RegionInfo& region : regions) {
    // A region that is not registered has no range yet.
    const bool has_range = region.length() != 0;
    table.AddRow({std::to_string(region.session_id()), std::to_string(region.mr_id()), std::to_string(region.pid()),
                  FormatUid(region.uid()), region.adapter_name(), region.fast_register() ? "fast" : "normal",
                  region.state(), has_range ? FormatAddress(region.base_virtual_address()) : "-",
                  has_range ? FormatBytes(region.length()) : "-", has_range ? std::to_string(region.pages()) : "-",
                  has_range ? PageSizeName(region.page_size()) : "-", has_range ? MrFlagNames(region.flags()) : "-"});
  }
  AddGenerations(generations, table);
  return table.Text();
}

Json RegionsJson(const std::vector<v1::RegionInfo>& regions, ItemGenerations generations) {
  Json list = Json::array();
  for (const v1::RegionInfo& region : regions) {
    list.push_back({{"session_id", std::to_string(region.session_id())},
                    {"mr_id", std::to_string(region.mr_id())},
                    {"pid", region.pid()},
                    {"uid", region.uid()},
                    {"adapter_name", region.adapter_name()},
                    {"fast_register", region.fast_register()},
                    {"state", region.state()},
                    {"base_virtual_address", FormatAddress(region.base_virtual_address())},
                    {"length", region.length()},
                    {"pages", region.pages()},
                    {"page_size", PageBytes(region.page_size())},
                    {"flags", region.flags()}});
  }
  AddGenerations(generations, list);
  return {{"regions", list}};
}

}  // namespace rnicd::ctl
