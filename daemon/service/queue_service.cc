#include "daemon/service/queue_service.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/service/cq_poll.h"
#include "daemon/service/pending.h"
#include "rnicd/v1/queue_service.pb.h"
#include "wire/queue.h"
#include "wire/work_request.h"

namespace rnicd::service {
namespace {

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

// --- completion queues ---

absl::Status CreateCq(gate::Call& call, const v1::CreateCqRequest& request, v1::CreateCqResponse* response) {
  RNICD_ASSIGN_OR_RETURN(
      const CompletionQueueId id,
      call.session()->CreateCq(AdapterId{request.adapter_id()}, request.cq_depth(), request.cq_context()));
  response->set_cq_id(id.value);
  return absl::OkStatus();
}

absl::Status ResizeCq(gate::Call& call, const v1::ResizeCqRequest& request, v1::ResizeCqResponse* /*response*/) {
  return call.session()->ResizeCq(CompletionQueueId{request.cq_id()}, request.cq_depth());
}

absl::Status ArmCq(gate::Call& call, const v1::ArmCqRequest& request, v1::ArmCqResponse* /*response*/) {
  RNICD_ASSIGN_OR_RETURN(const CqNotifyType type, wire::FromWire(request.type()));
  return call.session()->ArmCq(CompletionQueueId{request.cq_id()}, type);
}

void GetCqResults(const std::shared_ptr<gate::Call>& call, const v1::GetCqResultsRequest& request,
                  v1::GetCqResultsResponse* response) {
  PollCq(call, PollOf(request),
         [response](const Completion& result) { *response->add_results() = wire::ToWire(result); });
}

void GetCqResultsEx(const std::shared_ptr<gate::Call>& call, const v1::GetCqResultsExRequest& request,
                    v1::GetCqResultsExResponse* response) {
  PollCq(call, PollOf(request),
         [response](const Completion& result) { *response->add_results() = wire::ToWireEx(result); });
}

// --- queue pairs ---

absl::Status CreateQp(gate::Call& call, const v1::CreateQpRequest& request, v1::CreateQpResponse* response) {
  const core::CreateQpArguments arguments{.domain = ProtectionDomainId{request.pd_id()},
                                          .receive_queue = CompletionQueueId{request.receive_cq_id()},
                                          .initiator_queue = CompletionQueueId{request.initiator_cq_id()},
                                          .context = request.qp_context(),
                                          .limits = wire::LimitsFromWire(request)};
  RNICD_ASSIGN_OR_RETURN(const QueuePairId id, call.session()->CreateQp(arguments));
  response->set_qp_id(id.value);
  // Fails only if the card was removed meanwhile; the queue pair then is as good as its address.
  if (const absl::StatusOr<core::Session::QueuePairView> view = call.session()->QueryQp(id); view.ok()) {
    response->set_address(view->address);
  }
  return absl::OkStatus();
}

absl::Status QueryQp(gate::Call& call, const v1::QueryQpRequest& request, v1::QueryQpResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const core::Session::QueuePairView view,
                         call.session()->QueryQp(QueuePairId{request.qp_id()}));
  response->set_state(wire::ToWire(view.state));
  response->set_address(view.address);
  return absl::OkStatus();
}

absl::Status ConnectQp(gate::Call& call, const v1::ConnectQpRequest& request, v1::ConnectQpResponse* /*response*/) {
  return call.session()->ConnectQp(QueuePairId{request.qp_id()}, request.peer_address());
}

absl::Status DisconnectQp(gate::Call& call, const v1::DisconnectQpRequest& request,
                          v1::DisconnectQpResponse* /*response*/) {
  return call.session()->DisconnectQp(QueuePairId{request.qp_id()});
}

absl::Status Flush(gate::Call& call, const v1::FlushRequest& request, v1::FlushResponse* /*response*/) {
  return call.session()->Flush(QueuePairId{request.qp_id()});
}

absl::Status Post(gate::Call& call, const v1::PostRequest& request, v1::PostResponse* response) {
  if (request.requests().empty() || request.requests_size() > kMaxChain) {
    return MakeError(ErrorReason::BATCH_SIZE, "requests");
  }
  const std::vector<WorkRequest> chain = wire::FromWire(request.requests());
  RNICD_ASSIGN_OR_RETURN(const PostOutcome outcome, call.session()->Post(QueuePairId{request.qp_id()}, chain));
  *response = wire::ToWire(outcome);
  return absl::OkStatus();
}

// --- memory windows ---

absl::Status CreateMw(gate::Call& call, const v1::CreateMwRequest& request, v1::CreateMwResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const MemoryWindowId id, call.session()->CreateMw(ProtectionDomainId{request.pd_id()}));
  response->set_mw_id(id.value);
  return absl::OkStatus();
}

absl::Status GetRemoteTokenFromMw(gate::Call& call, const v1::GetRemoteTokenFromMwRequest& request,
                                  v1::GetRemoteTokenFromMwResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const RemoteToken token,
                         call.session()->GetRemoteTokenFromMw(MemoryWindowId{request.mw_id()}));
  response->set_remote_token(token.value);
  return absl::OkStatus();
}

absl::Status GetPrivilegedMemoryRegionToken(gate::Call& call, const v1::GetPrivilegedMemoryRegionTokenRequest& request,
                                            v1::GetPrivilegedMemoryRegionTokenResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const LocalToken token,
                         call.session()->GetPrivilegedMemoryRegionToken(ProtectionDomainId{request.pd_id()}));
  response->set_privileged_token(token.value);
  return absl::OkStatus();
}

}  // namespace

std::vector<gate::Method> QueueMethods() {
  using gate::Now;
  using gate::Row;
  return {
      Now(Row("QueueService.CreateCq"), CreateCq),
      Now(Row("QueueService.ResizeCq"), ResizeCq),
      Now(Row("QueueService.ArmCq"), ArmCq),
      gate::Later(Row("QueueService.GetCqResults"), GetCqResults),
      gate::Later(Row("QueueService.GetCqResultsEx"), GetCqResultsEx),
      Single(Row("QueueService.CloseCq"), CloseCq),
      Now(Row("QueueService.CreateQp"), CreateQp),
      Now(Row("QueueService.QueryQp"), QueryQp),
      Now(Row("QueueService.ConnectQp"), ConnectQp),
      Now(Row("QueueService.DisconnectQp"), DisconnectQp),
      Now(Row("QueueService.Flush"), Flush),
      Single(Row("QueueService.CloseQp"), CloseQp),
      Now(Row("QueueService.Post"), Post),
      Now(Row("QueueService.CreateMw"), CreateMw),
      Now(Row("QueueService.GetRemoteTokenFromMw"), GetRemoteTokenFromMw),
      Single(Row("QueueService.CloseMw"), CloseMw),
      Now(Row("QueueService.GetPrivilegedMemoryRegionToken"), GetPrivilegedMemoryRegionToken),
  };
}

}  // namespace rnicd::service
