#include <algorithm>

#include "absl/strings/ascii.h"
#include "client/ctl/line/units.h"
#include "client/ctl/output/table.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

std::string AddressText(const v1::NetworkAddress& address) {
  return address.address().empty()
             ? "-"
             : FormatHostPort({.host = address.address(), .port = static_cast<uint16_t>(address.port())});
}

// Null when not known yet.
Json AddressJson(const v1::NetworkAddress& address) {
  if (address.address().empty()) {
    return {};
  }
  return {{"address", address.address()}, {"port", address.port()}};
}

// "peer-gone"; the number of a state that this program does not know.
std::string StateName(v1::ConnectionState state) {
  constexpr std::string_view kPrefix = "CONNECTION_STATE_";
  std::string name(v1::ConnectionState_Name(state));
  if (name.size() <= kPrefix.size()) {
    return std::to_string(static_cast<int>(state));
  }
  name = absl::AsciiStrToLower(name.substr(kPrefix.size()));
  std::ranges::replace(name, '_', '-');
  return name;
}

}  // namespace

std::string ListenersText(const std::vector<v1::ListenerInfo>& listeners, ItemGenerations generations) {
  Table table({{"SESSION", Align::kRight},
               {"TENANT"},
               {"LISTENER", Align::kRight},
               {"ADAPTER"},
               {"ADDRESS"},
               {"NAME"},
               {"STATE"},
               {"REPORTED", Align::kRight},
               {"REFUSED", Align::kRight}});
  for (const v1::ListenerInfo& listener : listeners) {
    table.AddRow({std::to_string(listener.session_id()), listener.tenant(), std::to_string(listener.listener_id()),
                  listener.adapter_name(), AddressText(listener.local()),
                  listener.name().empty() ? "-" : listener.name(), listener.paused() ? "paused" : "listens",
                  std::to_string(listener.reported()), std::to_string(listener.refused())});
  }
  AddGenerations(generations, table);
  return table.Text();
}

Json ListenersJson(const std::vector<v1::ListenerInfo>& listeners, ItemGenerations generations) {
  Json list = Json::array();
  for (const v1::ListenerInfo& listener : listeners) {
    list.push_back({{"session_id", std::to_string(listener.session_id())},
                    {"tenant", listener.tenant()},
                    {"listener_id", std::to_string(listener.listener_id())},
                    {"adapter_name", listener.adapter_name()},
                    {"local", AddressJson(listener.local())},
                    {"name", listener.name()},
                    {"paused", listener.paused()},
                    {"reported", listener.reported()},
                    {"refused", listener.refused()}});
  }
  AddGenerations(generations, list);
  return {{"listeners", list}};
}

std::string ConnectionsText(const std::vector<v1::ConnectionInfo>& connections, ItemGenerations generations) {
  Table table({{"SESSION", Align::kRight},
               {"TENANT"},
               {"CONNECTOR", Align::kRight},
               {"ADAPTER"},
               {"SIDE"},
               {"STATE"},
               {"AGE", Align::kRight},
               {"LOCAL"},
               {"PEER"},
               {"SENT", Align::kRight},
               {"RECEIVED", Align::kRight}});
  for (const v1::ConnectionInfo& connection : connections) {
    table.AddRow(
        {std::to_string(connection.session_id()), connection.tenant(), std::to_string(connection.connector_id()),
         connection.adapter_name(), connection.passive() ? "passive" : "active", StateName(connection.state()),
         FormatMilliseconds(connection.age_ms()), AddressText(connection.local()), AddressText(connection.peer()),
         FormatBytes(connection.private_data_sent()), FormatBytes(connection.private_data_received())});
  }
  AddGenerations(generations, table);
  return table.Text();
}

Json ConnectionsJson(const std::vector<v1::ConnectionInfo>& connections, ItemGenerations generations) {
  Json list = Json::array();
  for (const v1::ConnectionInfo& connection : connections) {
    list.push_back({{"session_id", std::to_string(connection.session_id())},
                    {"tenant", connection.tenant()},
                    {"connector_id", std::to_string(connection.connector_id())},
                    {"adapter_name", connection.adapter_name()},
                    {"passive", connection.passive()},
                    {"state", StateName(connection.state())},
                    {"age_ms", connection.age_ms()},
                    {"local", AddressJson(connection.local())},
                    {"peer", AddressJson(connection.peer())},
                    {"qp_id", std::to_string(connection.qp_id())},
                    {"private_data_sent", connection.private_data_sent()},
                    {"private_data_received", connection.private_data_received()}});
  }
  AddGenerations(generations, list);
  return {{"connections", list}};
}

}  // namespace rnicd::ctl
