#include "client/ctl/table.h"
#include "client/ctl/units.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {
namespace {

uint64_t Used(const v1::SessionInfo& session, std::string_view name) {
  for (const v1::ResourceUse& resource : session.resources()) {
    if (resource.name() == name) {
      return resource.used();
    }
  }
  return 0;
}

}  // namespace

std::string SessionsText(const std::vector<v1::SessionInfo>& sessions) {
  Table table({{"SESSION", Align::kRight},
               {"PID", Align::kRight},
               {"UID", Align::kRight},
               {"LABEL"},
               {"AGE", Align::kRight},
               {"CONNECTIONS", Align::kRight},
               {"MEMORY", Align::kRight},
               {"REGISTERED", Align::kRight},
               {"REGIONS", Align::kRight}});
  for (const v1::SessionInfo& session : sessions) {
    table.AddRow({std::to_string(session.session_id()), std::to_string(session.pid()), std::to_string(session.uid()),
                  session.label().empty() ? "-" : session.label(), FormatMilliseconds(session.age_ms()),
                  std::to_string(session.connections()), FormatBytes(Used(session, "memory_bytes")),
                  FormatBytes(Used(session, "pinned_bytes")), std::to_string(Used(session, "regions"))});
  }
  return table.Text();
}

Json SessionsJson(const std::vector<v1::SessionInfo>& sessions) {
  Json list = Json::array();
  for (const v1::SessionInfo& session : sessions) {
    list.push_back({{"session_id", std::to_string(session.session_id())},
                    {"label", session.label()},
                    {"pid", session.pid()},
                    {"uid", session.uid()},
                    {"gid", session.gid()},
                    {"age_ms", session.age_ms()},
                    {"connections", session.connections()},
                    {"resources", ResourcesJson(session.resources())}});
  }
  return {{"sessions", list}};
}

}  // namespace rnicd::ctl
