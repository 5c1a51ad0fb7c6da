#include "client/ctl/line/units.h"
#include "client/ctl/output/table.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

std::string VersionName(const v1::NdkVersion& version) {
  return std::to_string(version.major()) + "." + std::to_string(version.minor());
}

Json InfoJson(const v1::NdkAdapterInfo& info) {
  return {{"version", VersionName(info.version())},
          {"vendor_id", info.vendor_id()},
          {"device_id", info.device_id()},
          {"max_registration_size", info.max_registration_size()},
          {"max_window_size", info.max_window_size()},
          {"frmr_page_count", info.frmr_page_count()},
          {"max_initiator_request_sge", info.max_initiator_request_sge()},
          {"max_receive_request_sge", info.max_receive_request_sge()},
          {"max_read_request_sge", info.max_read_request_sge()},
          {"max_transfer_length", info.max_transfer_length()},
          {"max_inline_data_size", info.max_inline_data_size()},
          {"max_inbound_read_limit", info.max_inbound_read_limit()},
          {"max_outbound_read_limit", info.max_outbound_read_limit()},
          {"max_receive_queue_depth", info.max_receive_queue_depth()},
          {"max_initiator_queue_depth", info.max_initiator_queue_depth()},
          {"max_srq_depth", info.max_srq_depth()},
          {"max_cq_depth", info.max_cq_depth()},
          {"large_request_threshold", info.large_request_threshold()},
          {"max_caller_data", info.max_caller_data()},
          {"max_callee_data", info.max_callee_data()},
          {"adapter_flags", info.adapter_flags()},
          {"rdma_technology", TechnologyName(info.rdma_technology())}};
}

}  // namespace

std::string TechnologyName(v1::RdmaTechnology technology) {
  switch (technology) {
    case v1::RDMA_TECHNOLOGY_IWARP:
      return "iwarp";
    case v1::RDMA_TECHNOLOGY_INFINIBAND:
      return "infiniband";
    case v1::RDMA_TECHNOLOGY_ROCE:
      return "roce";
    case v1::RDMA_TECHNOLOGY_ROCE_V2:
      return "rocev2";
    default:
      return "none";
  }
}

std::string AdaptersText(const v1::ListAdaptersResponse& adapters) {
  Table table({{"NAME"},
               {"PROVIDER"},
               {"TECHNOLOGY"},
               {"NDK"},
               {"NUMA NODE", Align::kRight},
               {"MAX REGISTRATION", Align::kRight},
               {"READ LIMIT IN/OUT", Align::kRight},
               {"MAX CQ DEPTH", Align::kRight},
               {"FAST REGISTRATION"}});
  for (const v1::AdapterSummary& adapter : adapters.adapters()) {
    const v1::NdkAdapterInfo& info = adapter.info();
    table.AddRow({adapter.name(), adapter.provider(), TechnologyName(info.rdma_technology()),
                  VersionName(info.version()), adapter.numa_node() < 0 ? "-" : std::to_string(adapter.numa_node()),
                  FormatBytes(info.max_registration_size()),
                  std::to_string(info.max_inbound_read_limit()) + "/" + std::to_string(info.max_outbound_read_limit()),
                  std::to_string(info.max_cq_depth()), adapter.fast_engine().empty() ? "-" : adapter.fast_engine()});
  }
  std::string text = table.Text();
  for (const v1::AdapterSummary& adapter : adapters.adapters()) {
    if (!adapter.fast_engine().empty()) {
      text += adapter.name() + ": fast registrations by \"" + adapter.fast_engine() +
              "\": " + adapter.fast_engine_reason() + "\n";
    }
  }
  return text;
}

Json AdaptersJson(const v1::ListAdaptersResponse& adapters) {
  Json list = Json::array();
  for (const v1::AdapterSummary& adapter : adapters.adapters()) {
    list.push_back({{"name", adapter.name()},
                    {"provider", adapter.provider()},
                    {"numa_node", adapter.numa_node()},
                    {"fast_engine", adapter.fast_engine()},
                    {"fast_engine_reason", adapter.fast_engine_reason()},
                    {"info", InfoJson(adapter.info())}});
  }
  return {{"adapters", list}};
}

}  // namespace rnicd::ctl
