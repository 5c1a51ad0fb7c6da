#include "client/ctl/line/units.h"
#include "client/ctl/output/table.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {

std::string SessionsText(const std::vector<v1::SessionInfo>& sessions, ItemGenerations generations) {
  Table table({{"SESSION", Align::kRight},
               {"PID", Align::kRight},
               {"UID", Align::kRight},
               {"TENANT"},
               {"LABEL"},
               {"AGE", Align::kRight},
               {"CONNECTIONS", Align::kRight},
               {"MEMORY", Align::kRight},
               {"PINNED", Align::kRight},
               {"REGIONS", Align::kRight},
               {"RINGS", Align::kRight}});
  for (const v1::SessionInfo& session : sessions) {
    table.AddRow({std::to_string(session.session_id()), std::to_string(session.pid()), FormatUid(session.uid()),
                  session.tenant(), session.label().empty() ? "-" : session.label(),
                  FormatMilliseconds(session.age_ms()), std::to_string(session.connections()),
                  FormatBytes(UseOf(session.resources(), "memory_bytes").used()),
                  FormatBytes(UseOf(session.resources(), "pinned_bytes").used()),
                  std::to_string(UseOf(session.resources(), "regions").used()),
                  std::to_string(UseOf(session.resources(), "rings").used())});
  }
  AddGenerations(generations, table);
  return table.Text();
}

Json SessionJson(const v1::SessionInfo& session) {
  return {{"session_id", std::to_string(session.session_id())},
          {"label", session.label()},
          {"pid", session.pid()},
          {"uid", session.uid()},
          {"gid", session.gid()},
          {"sid", session.sid()},
          {"tenant", session.tenant()},
          {"pod_uid", session.pod_uid()},
          {"container_id", session.container_id()},
          {"age_ms", session.age_ms()},
          {"connections", session.connections()},
          {"ending", session.ending()},
          {"resources", ResourcesJson(session.resources())}};
}

Json SessionsJson(const std::vector<v1::SessionInfo>& sessions, ItemGenerations generations) {
  Json list = Json::array();
  for (const v1::SessionInfo& session : sessions) {
    list.push_back(SessionJson(session));
  }
  AddGenerations(generations, list);
  return {{"sessions", list}};
}

}  // namespace rnicd::ctl
