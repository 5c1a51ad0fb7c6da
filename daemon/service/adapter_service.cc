#include "daemon/service/service_methods.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/service/messages/convert.h"
#include "daemon/service/messages/pending.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "wire/adapter_info.h"

namespace rnicd::service {
namespace {

absl::Status ListAdapters(provider::Provider& provider, v1::ListAdaptersResponse* response) {
  for (const provider::AdapterDescription& adapter : provider.ListAdapters()) {
    v1::AdapterSummary* summary = response->add_adapters();
    summary->set_name(adapter.name);
    summary->set_provider(std::string(provider.name()));
    summary->set_numa_node(adapter.numa_node);
    summary->set_fast_engine(adapter.fast_engine);
    summary->set_fast_engine_reason(adapter.fast_engine_reason);
    *summary->mutable_info() = wire::ToWire(adapter.info);
  }
  return absl::OkStatus();
}

absl::Status OpenAdapter(provider::Provider& provider, const core::SessionGuard& session,
                         const v1::OpenAdapterRequest& request, v1::OpenAdapterResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const NdkVersion version,
                         wire::FromWire(request.has_version() ? &request.version() : nullptr));
  std::string name = request.adapter_name();
  if (name.empty()) {
    const std::vector<provider::AdapterDescription> adapters = provider.ListAdapters();
    name = adapters.empty() ? "" : adapters.front().name;
  }
  RNICD_ASSIGN_OR_RETURN(const AdapterId id, session.adapters().Open(name, version));
  response->set_adapter_id(id.value);
  *response->mutable_version() = wire::ToWire(core::kNdkVersion);
  response->set_adapter_name(name);
  return absl::OkStatus();
}

absl::Status QueryAdapterInfo(const core::SessionGuard& session, const v1::QueryAdapterInfoRequest& request,
                              v1::QueryAdapterInfoResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const NdkAdapterInfo info, session.adapters().QueryInfo(AdapterId{request.adapter_id()}));
  *response->mutable_info() = wire::ToWire(info);
  return absl::OkStatus();
}

void CloseAdapter(const core::SessionGuard& session, const v1::CloseAdapterRequest& request,
                  const gate::Reply<v1::CloseAdapterResponse>& reply) {
  const core::Done<> done = DoneOf(reply);
  core::FinishUnlessPending(session.adapters().Close(AdapterId{request.adapter_id()}, done), done);
}

}  // namespace

std::vector<gate::Method> AdapterMethods(provider::Provider& provider) {
  using core::Row;
  using gate::Serve;
  return {
      Serve(Row("AdapterService.ListAdapters"),
            [&provider](gate::Call&, const v1::ListAdaptersRequest&, v1::ListAdaptersResponse* response) {
              return ListAdapters(provider, response);
            }),
      Serve(
          Row("AdapterService.OpenAdapter"),
          [&provider](const core::SessionGuard& session, const v1::OpenAdapterRequest& request,
                      v1::OpenAdapterResponse* response) { return OpenAdapter(provider, session, request, response); }),
      Serve(Row("AdapterService.QueryAdapterInfo"), QueryAdapterInfo),
      Serve(Row("AdapterService.CloseAdapter"), CloseAdapter),
  };
}

}  // namespace rnicd::service
