#include "daemon/service/service_methods.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/service/cq_poll.h"
#include "daemon/service/messages/convert.h"
#include "daemon/service/messages/pending.h"
#include "rnicd/v1/queue_service.pb.h"
#include "wire/queue.h"
#include "wire/work_request.h"

namespace rnicd::service {
namespace {

constexpr int kMaxChain = 1024;

void CloseCq(const core::SessionGuard& session, const v1::CloseCqRequest& request,
             const gate::Reply<v1::CloseCqResponse>& reply) {
  const core::Done<> done = DoneOf(reply);
  ReplyToBegun(session.queues().Close(CompletionQueueId{request.cq_id()}, ChoiceOf(request), done),
               request.allow_pending(), done, reply);
}

void CloseQp(const core::SessionGuard& session, const v1::CloseQpRequest& request,
             const gate::Reply<v1::CloseQpResponse>& reply) {
  const core::Done<> done = DoneOf(reply);
  ReplyToBegun(session.pairs().Close(QueuePairId{request.qp_id()}, ChoiceOf(request), done), request.allow_pending(),
               done, reply);
}

void CloseMw(const core::SessionGuard& session, const v1::CloseMwRequest& request,
             const gate::Reply<v1::CloseMwResponse>& reply) {
  const core::Done<> done = DoneOf(reply);
  ReplyToBegun(session.windows().Close(MemoryWindowId{request.mw_id()}, ChoiceOf(request), done),
               request.allow_pending(), done, reply);
}

// --- completion queues ---

absl::Status CreateMappedCq(const core::SessionGuard& session, const v1::CreateCqRequest& request,
                            v1::CreateCqResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const core::CreatedMappedCq created,
                         session.queues().CreateMapped({.adapter = AdapterId{request.adapter_id()},
                                                        .depth = request.cq_depth(),
                                                        .context = request.cq_context(),
                                                        .depth_max = request.mapped_depth_max()}));
  response->set_cq_id(created.queue.value);
  v1::MappedCq& mapped = *response->mutable_mapped();
  mapped.set_file_bytes(created.file_bytes);
  mapped.set_memory_ticket(ToWire(created.memory));
  mapped.set_pipe_ticket(ToWire(created.pipe));
  return absl::OkStatus();
}

absl::Status CreateCq(const core::SessionGuard& session, const v1::CreateCqRequest& request,
                      v1::CreateCqResponse* response) {
  if (request.mapped()) {
    return CreateMappedCq(session, request, response);
  }
  RNICD_ASSIGN_OR_RETURN(const CompletionQueueId id, session.queues().Create(AdapterId{request.adapter_id()},
                                                                             request.cq_depth(), request.cq_context()));
  response->set_cq_id(id.value);
  return absl::OkStatus();
}

absl::Status ResizeCq(const core::SessionGuard& session, const v1::ResizeCqRequest& request,
                      v1::ResizeCqResponse* /*response*/) {
  return session.queues().Resize(CompletionQueueId{request.cq_id()}, request.cq_depth());
}

absl::Status ArmCq(const core::SessionGuard& session, const v1::ArmCqRequest& request,
                   v1::ArmCqResponse* /*response*/) {
  RNICD_ASSIGN_OR_RETURN(const CqNotifyType type, wire::FromWire(request.type()));
  return session.queues().Arm(CompletionQueueId{request.cq_id()}, type);
}

void GetCqResults(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                  const v1::GetCqResultsRequest& request, v1::GetCqResultsResponse* response) {
  PollCq(call, session, PollOf(request),
         [response](const Completion& result) { *response->add_results() = wire::ToWire(result); });
}

void GetCqResultsEx(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                    const v1::GetCqResultsExRequest& request, v1::GetCqResultsExResponse* response) {
  PollCq(call, session, PollOf(request),
         [response](const Completion& result) { *response->add_results() = wire::ToWireEx(result); });
}

// --- queue pairs ---

absl::Status CreateQp(const core::SessionGuard& session, const v1::CreateQpRequest& request,
                      v1::CreateQpResponse* response) {
  const core::CreateQpArguments arguments{.domain = ProtectionDomainId{request.pd_id()},
                                          .receive_queue = CompletionQueueId{request.receive_cq_id()},
                                          .initiator_queue = CompletionQueueId{request.initiator_cq_id()},
                                          .context = request.qp_context(),
                                          .limits = {.receive_depth = request.receive_queue_depth(),
                                                     .initiator_depth = request.initiator_queue_depth(),
                                                     .receive_entries = request.max_receive_request_sge(),
                                                     .initiator_entries = request.max_initiator_request_sge(),
                                                     .inline_bytes = request.inline_data_size()},
                                          .flush_with_peer = request.flush_with_peer()};
  RNICD_ASSIGN_OR_RETURN(const QueuePairId id, session.pairs().Create(arguments));
  response->set_qp_id(id.value);
  response->set_without_outcome(true);
  // Fails only if the card was removed meanwhile; the queue pair then is as good as its address.
  if (const absl::StatusOr<core::QueuePairView> view = session.pairs().Query(id); view.ok()) {
    response->set_address(view->address);
  }
  return absl::OkStatus();
}

absl::Status QueryQp(const core::SessionGuard& session, const v1::QueryQpRequest& request,
                     v1::QueryQpResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const core::QueuePairView view, session.pairs().Query(QueuePairId{request.qp_id()}));
  response->set_state(wire::ToWire(view.state));
  response->set_address(view.address);
  return absl::OkStatus();
}

absl::Status ConnectQp(const core::SessionGuard& session, const v1::ConnectQpRequest& request,
                       v1::ConnectQpResponse* /*response*/) {
  return session.pairs().Connect(QueuePairId{request.qp_id()}, request.peer_address());
}

absl::Status DisconnectQp(const core::SessionGuard& session, const v1::DisconnectQpRequest& request,
                          v1::DisconnectQpResponse* /*response*/) {
  return session.pairs().Disconnect(QueuePairId{request.qp_id()});
}

absl::Status Flush(const core::SessionGuard& session, const v1::FlushRequest& request,
                   v1::FlushResponse* /*response*/) {
  return session.pairs().Flush(QueuePairId{request.qp_id()});
}

absl::Status Post(const core::SessionGuard& session, const v1::PostRequest& request, v1::PostResponse* response) {
  if (request.requests().empty() || request.requests_size() > kMaxChain) {
    return MakeError(ErrorReason::BATCH_SIZE, "requests");
  }
  const std::vector<WorkRequest> chain = wire::FromWire(request.requests());
  const auto refusals = request.without_outcome() ? core::Refusals::kAsCompletions : core::Refusals::kInOutcome;
  RNICD_ASSIGN_OR_RETURN(PostOutcome outcome, session.pairs().Post(QueuePairId{request.qp_id()}, chain, refusals));
  if (request.without_outcome()) {
    outcome.failure = absl::OkStatus();
  }
  *response = wire::ToWire(outcome);
  return absl::OkStatus();
}

// --- memory windows ---

absl::Status CreateMw(const core::SessionGuard& session, const v1::CreateMwRequest& request,
                      v1::CreateMwResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const MemoryWindowId id, session.windows().Create(ProtectionDomainId{request.pd_id()}));
  response->set_mw_id(id.value);
  return absl::OkStatus();
}

absl::Status GetRemoteTokenFromMw(const core::SessionGuard& session, const v1::GetRemoteTokenFromMwRequest& request,
                                  v1::GetRemoteTokenFromMwResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const RemoteToken token, session.windows().GetRemoteToken(MemoryWindowId{request.mw_id()}));
  response->set_remote_token(token.value);
  return absl::OkStatus();
}

absl::Status GetPrivilegedMemoryRegionToken(const core::SessionGuard& session,
                                            const v1::GetPrivilegedMemoryRegionTokenRequest& request,
                                            v1::GetPrivilegedMemoryRegionTokenResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const LocalToken token,
                         session.domains().GetPrivilegedMemoryRegionToken(ProtectionDomainId{request.pd_id()}));
  response->set_privileged_token(token.value);
  return absl::OkStatus();
}

}  // namespace

std::vector<gate::Method> QueueMethods() {
  using core::Row;
  using gate::Serve;
  return {
      Serve(Row("QueueService.CreateCq"), CreateCq),
      Serve(Row("QueueService.ResizeCq"), ResizeCq),
      Serve(Row("QueueService.ArmCq"), ArmCq),
      Serve(Row("QueueService.GetCqResults"), GetCqResults),
      Serve(Row("QueueService.GetCqResultsEx"), GetCqResultsEx),
      Serve(Row("QueueService.CloseCq"), CloseCq),
      Serve(Row("QueueService.CreateQp"), CreateQp),
      Serve(Row("QueueService.QueryQp"), QueryQp),
      Serve(Row("QueueService.ConnectQp"), ConnectQp),
      Serve(Row("QueueService.DisconnectQp"), DisconnectQp),
      Serve(Row("QueueService.Flush"), Flush),
      Serve(Row("QueueService.CloseQp"), CloseQp),
      Serve(Row("QueueService.Post"), Post),
      Serve(Row("QueueService.CreateMw"), CreateMw),
      Serve(Row("QueueService.GetRemoteTokenFromMw"), GetRemoteTokenFromMw),
      Serve(Row("QueueService.CloseMw"), CloseMw),
      Serve(Row("QueueService.GetPrivilegedMemoryRegionToken"), GetPrivilegedMemoryRegionToken),
  };
}

}  // namespace rnicd::service
