#include "daemon/service/queue_service.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/service/cq_poll.h"
#include "daemon/service/pending.h"
#include "daemon/service/unary.h"
#include "daemon/service/work_request_wire.h"
#include "rnicd/v1/queue_service.grpc.pb.h"

namespace rnicd::service {
namespace {

class QueueService final : public v1::QueueService::CallbackService {
 public:
  explicit QueueService(gate::Gate gate) : gate_(std::move(gate)) {}

  RNICD_UNARY(CreateCq)
  RNICD_UNARY(ResizeCq)
  RNICD_UNARY(ArmCq)
  RNICD_UNARY(GetCqResults)
  RNICD_UNARY(GetCqResultsEx)
  RNICD_UNARY(CloseCq)
  RNICD_UNARY(CreateQp)
  RNICD_UNARY(QueryQp)
  RNICD_UNARY(ConnectQp)
  RNICD_UNARY(DisconnectQp)
  RNICD_UNARY(Flush)
  RNICD_UNARY(CloseQp)
  RNICD_UNARY(Post)
  RNICD_UNARY(CreateMw)
  RNICD_UNARY(GetRemoteTokenFromMw)
  RNICD_UNARY(CloseMw)
  RNICD_UNARY(GetPrivilegedMemoryRegionToken)

 private:
  gate::Gate gate_;
};

constexpr int kMaxChain = 1024;

void CloseCq(core::Session& session, const v1::CloseCqRequest& request, const Reply<v1::CloseCqResponse>& reply) {
  ReplyToProgress(session.CloseCq(CompletionQueueId{request.cq_id()}, ChoiceOf(request), DoneOf(reply)),
                  request.allow_pending(), reply);
}

void CloseQp(core::Session& session, const v1::CloseQpRequest& request, const Reply<v1::CloseQpResponse>& reply) {
  ReplyToProgress(session.CloseQp(QueuePairId{request.qp_id()}, ChoiceOf(request), DoneOf(reply)),
                  request.allow_pending(), reply);
}

void CloseMw(core::Session& session, const v1::CloseMwRequest& request, const Reply<v1::CloseMwResponse>& reply) {
  ReplyToProgress(session.CloseMw(MemoryWindowId{request.mw_id()}, ChoiceOf(request), DoneOf(reply)),
                  request.allow_pending(), reply);
}

}  // namespace

// --- completion queues ---

grpc::ServerUnaryReactor* QueueService::CreateCq(grpc::CallbackServerContext* /*context*/,
                                                 const v1::CreateCqRequest* request, v1::CreateCqResponse* response) {
  return gate_.Unary(gate::Row("QueueService.CreateCq"), request, response, [&](gate::Call& call) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(
        const CompletionQueueId id,
        call.session()->CreateCq(AdapterId{request->adapter_id()}, request->cq_depth(), request->cq_context()));
    response->set_cq_id(id.value);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* QueueService::ResizeCq(grpc::CallbackServerContext* /*context*/,
                                                 const v1::ResizeCqRequest* request, v1::ResizeCqResponse* response) {
  return gate_.Unary(gate::Row("QueueService.ResizeCq"), request, response, [&](gate::Call& call) {
    return call.session()->ResizeCq(CompletionQueueId{request->cq_id()}, request->cq_depth());
  });
}

grpc::ServerUnaryReactor* QueueService::ArmCq(grpc::CallbackServerContext* /*context*/, const v1::ArmCqRequest* request,
                                              v1::ArmCqResponse* response) {
  return gate_.Unary(gate::Row("QueueService.ArmCq"), request, response, [&](gate::Call& call) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const core::CqNotifyType type, FromWire(request->type()));
    return call.session()->ArmCq(CompletionQueueId{request->cq_id()}, type);
  });
}

grpc::ServerUnaryReactor* QueueService::GetCqResults(grpc::CallbackServerContext* /*context*/,
                                                     const v1::GetCqResultsRequest* request,
                                                     v1::GetCqResultsResponse* response) {
  return gate_.UnaryAsync(gate::Row("QueueService.GetCqResults"), request, response,
                          [request, response](const std::shared_ptr<gate::Call>& call) {
                            PollCq(call, PollOf(*request), [response](const core::CqResult& result) {
                              *response->add_results() = ToWire(result);
                            });
                          });
}

grpc::ServerUnaryReactor* QueueService::GetCqResultsEx(grpc::CallbackServerContext* /*context*/,
                                                       const v1::GetCqResultsExRequest* request,
                                                       v1::GetCqResultsExResponse* response) {
  return gate_.UnaryAsync(gate::Row("QueueService.GetCqResultsEx"), request, response,
                          [request, response](const std::shared_ptr<gate::Call>& call) {
                            PollCq(call, PollOf(*request), [response](const core::CqResult& result) {
                              *response->add_results() = ToWireEx(result);
                            });
                          });
}

// --- queue pairs ---

grpc::ServerUnaryReactor* QueueService::CreateQp(grpc::CallbackServerContext* /*context*/,
                                                 const v1::CreateQpRequest* request, v1::CreateQpResponse* response) {
  return gate_.Unary(gate::Row("QueueService.CreateQp"), request, response, [&](gate::Call& call) -> absl::Status {
    const core::CreateQpArguments arguments{.domain = ProtectionDomainId{request->pd_id()},
                                            .receive_queue = CompletionQueueId{request->receive_cq_id()},
                                            .initiator_queue = CompletionQueueId{request->initiator_cq_id()},
                                            .context = request->qp_context(),
                                            .limits = {.receive_depth = request->receive_queue_depth(),
                                                       .initiator_depth = request->initiator_queue_depth(),
                                                       .receive_entries = request->max_receive_request_sge(),
                                                       .initiator_entries = request->max_initiator_request_sge(),
                                                       .inline_bytes = request->inline_data_size()}};
    RNICD_ASSIGN_OR_RETURN(const QueuePairId id, call.session()->CreateQp(arguments));
    response->set_qp_id(id.value);
    // Fails only if the card was removed meanwhile; the queue pair then is as good as its address.
    if (const absl::StatusOr<core::Session::QueuePairView> view = call.session()->QueryQp(id); view.ok()) {
      response->set_address(view->address);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* QueueService::QueryQp(grpc::CallbackServerContext* /*context*/,
                                                const v1::QueryQpRequest* request, v1::QueryQpResponse* response) {
  return gate_.Unary(gate::Row("QueueService.QueryQp"), request, response, [&](gate::Call& call) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const core::Session::QueuePairView view,
                           call.session()->QueryQp(QueuePairId{request->qp_id()}));
    response->set_state(ToWire(view.state));
    response->set_address(view.address);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* QueueService::ConnectQp(grpc::CallbackServerContext* /*context*/,
                                                  const v1::ConnectQpRequest* request,
                                                  v1::ConnectQpResponse* response) {
  return gate_.Unary(gate::Row("QueueService.ConnectQp"), request, response, [&](gate::Call& call) {
    return call.session()->ConnectQp(QueuePairId{request->qp_id()}, request->peer_address());
  });
}

grpc::ServerUnaryReactor* QueueService::DisconnectQp(grpc::CallbackServerContext* /*context*/,
                                                     const v1::DisconnectQpRequest* request,
                                                     v1::DisconnectQpResponse* response) {
  return gate_.Unary(gate::Row("QueueService.DisconnectQp"), request, response,
                     [&](gate::Call& call) { return call.session()->DisconnectQp(QueuePairId{request->qp_id()}); });
}

grpc::ServerUnaryReactor* QueueService::Flush(grpc::CallbackServerContext* /*context*/, const v1::FlushRequest* request,
                                              v1::FlushResponse* response) {
  return gate_.Unary(gate::Row("QueueService.Flush"), request, response,
                     [&](gate::Call& call) { return call.session()->Flush(QueuePairId{request->qp_id()}); });
}

grpc::ServerUnaryReactor* QueueService::Post(grpc::CallbackServerContext* /*context*/, const v1::PostRequest* request,
                                             v1::PostResponse* response) {
  return gate_.Unary(gate::Row("QueueService.Post"), request, response, [&](gate::Call& call) -> absl::Status {
    if (request->requests().empty() || request->requests_size() > kMaxChain) {
      return MakeError(ErrorReason::BATCH_SIZE, "requests");
    }
    const std::vector<core::WorkRequest> chain = FromWire(request->requests());
    RNICD_ASSIGN_OR_RETURN(const core::PostOutcome outcome, call.session()->Post(QueuePairId{request->qp_id()}, chain));
    *response = ToWire(outcome);
    return absl::OkStatus();
  });
}

// --- memory windows ---

grpc::ServerUnaryReactor* QueueService::CreateMw(grpc::CallbackServerContext* /*context*/,
                                                 const v1::CreateMwRequest* request, v1::CreateMwResponse* response) {
  return gate_.Unary(gate::Row("QueueService.CreateMw"), request, response, [&](gate::Call& call) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const MemoryWindowId id, call.session()->CreateMw(ProtectionDomainId{request->pd_id()}));
    response->set_mw_id(id.value);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* QueueService::GetRemoteTokenFromMw(grpc::CallbackServerContext* /*context*/,
                                                             const v1::GetRemoteTokenFromMwRequest* request,
                                                             v1::GetRemoteTokenFromMwResponse* response) {
  return gate_.Unary(gate::Row("QueueService.GetRemoteTokenFromMw"), request, response,
                     [&](gate::Call& call) -> absl::Status {
                       RNICD_ASSIGN_OR_RETURN(const RemoteToken token,
                                              call.session()->GetRemoteTokenFromMw(MemoryWindowId{request->mw_id()}));
                       response->set_remote_token(token.value);
                       return absl::OkStatus();
                     });
}

grpc::ServerUnaryReactor* QueueService::GetPrivilegedMemoryRegionToken(
    grpc::CallbackServerContext* /*context*/, const v1::GetPrivilegedMemoryRegionTokenRequest* request,
    v1::GetPrivilegedMemoryRegionTokenResponse* response) {
  return gate_.Unary(gate::Row("QueueService.GetPrivilegedMemoryRegionToken"), request, response,
                     [&](gate::Call& call) -> absl::Status {
                       RNICD_ASSIGN_OR_RETURN(const LocalToken token, call.session()->GetPrivilegedMemoryRegionToken(
                                                                          ProtectionDomainId{request->pd_id()}));
                       response->set_privileged_token(token.value);
                       return absl::OkStatus();
                     });
}

#define RNICD_CLOSE(method)                                                                                            \
  grpc::ServerUnaryReactor* QueueService::method(grpc::CallbackServerContext* /*context*/,                             \
                                                 const v1::method##Request* request, v1::method##Response* response) { \
    return gate_.UnaryAsync(gate::Row("QueueService." #method), request, response,                                     \
                            [request, response](const std::shared_ptr<gate::Call>& call) {                             \
                              service::method(*call->session(), *request, ReplyTo(call, response));                    \
                            });                                                                                        \
  }

RNICD_CLOSE(CloseCq)
RNICD_CLOSE(CloseQp)
RNICD_CLOSE(CloseMw)

std::unique_ptr<grpc::Service> MakeQueueService(gate::Gate gate) {
  return std::make_unique<QueueService>(std::move(gate));
}

}  // namespace rnicd::service
