#include "daemon/service/adapter_service.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/service/convert.h"
#include "daemon/service/unary.h"
#include "rnicd/v1/adapter_service.grpc.pb.h"

namespace rnicd::service {
namespace {

class AdapterService final : public v1::AdapterService::CallbackService {
 public:
  AdapterService(gate::Gate gate, provider::Provider& provider) : gate_(std::move(gate)), provider_(provider) {}

  RNICD_UNARY(ListAdapters)
  RNICD_UNARY(OpenAdapter)
  RNICD_UNARY(QueryAdapterInfo)
  RNICD_UNARY(CloseAdapter)

 private:
  gate::Gate gate_;
  provider::Provider& provider_;
};

}  // namespace

grpc::ServerUnaryReactor* AdapterService::ListAdapters(grpc::CallbackServerContext* /*context*/,
                                                       const v1::ListAdaptersRequest* request,
                                                       v1::ListAdaptersResponse* response) {
  return gate_.Unary(gate::Row("AdapterService.ListAdapters"), request, response, [&](gate::Call&) {
    for (const provider::AdapterDescription& adapter : provider_.ListAdapters()) {
      v1::AdapterSummary* summary = response->add_adapters();
      summary->set_name(adapter.name);
      summary->set_provider(std::string(provider_.name()));
      summary->set_numa_node(adapter.numa_node);
      *summary->mutable_info() = ToWire(adapter.info);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdapterService::OpenAdapter(grpc::CallbackServerContext* /*context*/,
                                                      const v1::OpenAdapterRequest* request,
                                                      v1::OpenAdapterResponse* response) {
  return gate_.Unary(gate::Row("AdapterService.OpenAdapter"), request, response, [&](gate::Call& call) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const NdkVersion version, FromWire(request->has_version() ? &request->version() : nullptr));
    std::string name = request->adapter_name();
    if (name.empty()) {
      const std::vector<provider::AdapterDescription> adapters = provider_.ListAdapters();
      name = adapters.empty() ? "" : adapters.front().name;
    }
    RNICD_ASSIGN_OR_RETURN(const AdapterId id, call.session()->OpenAdapter(name, version));
    response->set_adapter_id(id.value);
    *response->mutable_version() = ToWire(core::kNdkVersion);
    response->set_adapter_name(name);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdapterService::QueryAdapterInfo(grpc::CallbackServerContext* /*context*/,
                                                           const v1::QueryAdapterInfoRequest* request,
                                                           v1::QueryAdapterInfoResponse* response) {
  return gate_.Unary(gate::Row("AdapterService.QueryAdapterInfo"), request, response,
                     [&](gate::Call& call) -> absl::Status {
                       RNICD_ASSIGN_OR_RETURN(const NdkAdapterInfo info,
                                              call.session()->QueryAdapterInfo(AdapterId{request->adapter_id()}));
                       *response->mutable_info() = ToWire(info);
                       return absl::OkStatus();
                     });
}

grpc::ServerUnaryReactor* AdapterService::CloseAdapter(grpc::CallbackServerContext* /*context*/,
                                                       const v1::CloseAdapterRequest* request,
                                                       v1::CloseAdapterResponse* response) {
  return gate_.UnaryAsync(
      gate::Row("AdapterService.CloseAdapter"), request, response, [request](const std::shared_ptr<gate::Call>& call) {
        const auto finish = [call](const absl::Status& status) { call->Finish(status); };
        const auto progress = call->session()->CloseAdapter(AdapterId{request->adapter_id()}, finish);
        if (!progress.ok() || *progress == core::Progress::kDone) {
          finish(progress.status());
        }
      });
}

std::unique_ptr<grpc::Service> MakeAdapterService(gate::Gate gate, provider::Provider& provider) {
  return std::make_unique<AdapterService>(std::move(gate), provider);
}

}  // namespace rnicd::service
