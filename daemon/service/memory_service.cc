#include "daemon/service/memory_service.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/service/batch.h"
#include "daemon/service/convert.h"
#include "daemon/service/memory_operations.h"
#include "daemon/service/pending.h"
#include "rnicd/v1/memory_service.pb.h"
#include "wire/memory.h"

namespace rnicd::service {
namespace {

absl::StatusOr<core::AllocateArguments> AllocateArgumentsFromWire(const v1::AllocateMemoryRequest& request) {
  core::AllocateArguments arguments{
      .size = request.size(), .page_bytes = std::nullopt, .progress_context = request.progress_context()};
  if (request.page_size() != v1::PAGE_SIZE_AUTO) {
    RNICD_ASSIGN_OR_RETURN(arguments.page_bytes, wire::PageBytesFromWire(request.page_size()));
  }
  if (request.has_numa_node()) {
    arguments.numa_node = request.numa_node();
  }
  return arguments;
}

// The two ways to memory, which answer with a ticket for the fd socket.
class TicketedMemory {
 public:
  explicit TicketedMemory(const core::TicketTable& tickets) : tickets_(tickets) {}

  void Allocate(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                const v1::AllocateMemoryRequest& request, v1::AllocateMemoryResponse* response) {
    const auto done = [call, response, this](const absl::StatusOr<core::MemoryTicket>& ticket) {
      const bool delivered = call->Finish(ticket.status(), [&] {
        if (ticket.ok()) {
          FillTicket(*ticket, response);
          response->set_page_size(wire::PageSizeToWire(ticket->page_bytes));
          response->set_transparent_huge_pages(ticket->transparent_huge_pages);
          response->set_from_pool(ticket->from_pool);
        }
      });
      if (!delivered && ticket.ok()) {
        DropMemory(*call->session(), ticket->memory);  // The client never received its id.
      }
    };
    const auto arguments = AllocateArgumentsFromWire(request);
    const core::MaybePending<core::MemoryTicket> begun =
        arguments.ok() ? session.memory().Allocate(*arguments, done) : arguments.status();
    if (!begun.pending()) {
      done(begun.outcome());
    }
  }

  absl::Status Import(const core::SessionGuard& session, const v1::ImportMemoryRequest& request,
                      v1::ImportMemoryResponse* response) {
    RNICD_ASSIGN_OR_RETURN(const core::MemoryTicket ticket, session.memory().Import(request.size()));
    FillTicket(ticket, response);
    return absl::OkStatus();
  }

 private:
  // A session that is ending releases it anyway.
  static void DropMemory(core::Session& session, MemoryObjectId id) {
    if (const absl::StatusOr<core::SessionGuard> held = session.Begin(); held.ok()) {
      held->memory().Drop(id);
    }
  }

  template <typename Response>
  void FillTicket(const core::MemoryTicket& ticket, Response* response) const {
    response->set_memory_id(ticket.memory.value);
    response->set_fd_ticket(ToWire(ticket.ticket));
    response->set_ticket_lifetime_ms(static_cast<uint32_t>(tickets_.lifetime().count()));
  }

  const core::TicketTable& tickets_;
};

void SealMemory(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                const v1::SealMemoryRequest& request, v1::SealMemoryResponse* response) {
  const auto memory = session.memory().Find(MemoryObjectId{request.memory_id()});
  if (!memory.ok()) {
    call->Finish(memory.status());
    return;
  }
  const core::Done<> finish = [call, response, memory = *memory](const absl::Status& status) {
    call->Finish(status, [&] {
      if (status.ok()) {
        response->set_size(memory->size());
        response->set_page_size(wire::PageSizeToWire(memory->page_bytes()));
      }
    });
  };
  FinishUnlessPending(session.memory().Seal(*memory, finish), finish);
}

void ReleaseMemory(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                   const v1::ReleaseMemoryRequest& request, v1::ReleaseMemoryResponse* /*response*/) {
  const auto finish = [call](const absl::Status& status) { call->Finish(status); };
  FinishUnlessPending(session.memory().Release(MemoryObjectId{request.memory_id()}, finish), finish);
}

absl::Status CreatePd(const core::SessionGuard& session, const v1::CreatePdRequest& request,
                      v1::CreatePdResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const ProtectionDomainId id, session.domains().Create(AdapterId{request.adapter_id()}));
  response->set_pd_id(id.value);
  return absl::OkStatus();
}

absl::Status BuildLam(const core::SessionGuard& session, const v1::BuildLamRequest& request,
                      v1::BuildLamResponse* response) {
  const std::vector<MdlEntry> chain = wire::FromWire(request.mdl_chain());
  core::BuildLamArguments arguments{
      .adapter = AdapterId{request.adapter_id()}, .chain = chain, .length = request.length()};
  if (request.has_lam_size()) {
    arguments.lam_size = request.lam_size();
  }
  RNICD_ASSIGN_OR_RETURN(const core::BuiltLam lam, session.mappings().Build(arguments));
  response->set_lam_id(lam.id.value);
  response->set_fbo(lam.fbo);
  response->mutable_adapter_page_array()->Reserve(static_cast<int>(lam.pages));
  for (uint64_t page = 0; page < lam.pages; ++page) {
    response->add_adapter_page_array(lam.first.value + page * kNdkPageBytes);
  }
  return absl::OkStatus();
}

absl::Status ReleaseLam(const core::SessionGuard& session, const v1::ReleaseLamRequest& request,
                        v1::ReleaseLamResponse* /*response*/) {
  return session.mappings().Release(LogicalMappingId{request.lam_id()});
}

// A batch of one region request, whose handler is `operation`.
template <typename Request, typename Response, typename Operation>
gate::Method Batch(const gate::MethodRow& row, Operation operation) {
  return gate::Later(row, [operation](const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                                      const Request& request,
                                      Response* response) { RunBatch(call, session, request, response, operation); });
}

}  // namespace

std::vector<gate::Method> MemoryMethods(const core::TicketTable& tickets) {
  using gate::Later;
  using gate::Now;
  using gate::Row;
  const auto memory = std::make_shared<TicketedMemory>(tickets);
  return {
      Later(Row("MemoryService.AllocateMemory"), gate::Bind(memory, &TicketedMemory::Allocate)),
      Now(Row("MemoryService.ImportMemory"), gate::Bind(memory, &TicketedMemory::Import)),
      Later(Row("MemoryService.SealMemory"), SealMemory),
      Later(Row("MemoryService.ReleaseMemory"), ReleaseMemory),
      Now(Row("MemoryService.CreatePd"), CreatePd),
      Single(Row("MemoryService.ClosePd"), ClosePd),
      Single(Row("MemoryService.CreateMr"), CreateMr),
      Single(Row("MemoryService.RegisterMr"), RegisterMr),
      Single(Row("MemoryService.DeregisterMr"), DeregisterMr),
      Single(Row("MemoryService.InitializeFastRegisterMr"), InitializeFastRegisterMr),
      Single(Row("MemoryService.GetLocalToken"), GetLocalToken),
      Single(Row("MemoryService.GetRemoteToken"), GetRemoteToken),
      Single(Row("MemoryService.CloseMr"), CloseMr),
      Now(Row("MemoryService.BuildLam"), BuildLam),
      Now(Row("MemoryService.ReleaseLam"), ReleaseLam),
      Batch<v1::BatchCreateMrRequest, v1::BatchCreateMrResponse>(Row("MemoryService.BatchCreateMr"), CreateMr),
      Batch<v1::BatchRegisterMrRequest, v1::BatchRegisterMrResponse>(Row("MemoryService.BatchRegisterMr"), RegisterMr),
      Batch<v1::BatchDeregisterMrRequest, v1::BatchDeregisterMrResponse>(Row("MemoryService.BatchDeregisterMr"),
                                                                         DeregisterMr),
      Batch<v1::BatchInitializeFastRegisterMrRequest, v1::BatchInitializeFastRegisterMrResponse>(
          Row("MemoryService.BatchInitializeFastRegisterMr"), InitializeFastRegisterMr),
      Batch<v1::BatchGetLocalTokenRequest, v1::BatchGetLocalTokenResponse>(Row("MemoryService.BatchGetLocalToken"),
                                                                           GetLocalToken),
      Batch<v1::BatchGetRemoteTokenRequest, v1::BatchGetRemoteTokenResponse>(Row("MemoryService.BatchGetRemoteToken"),
                                                                             GetRemoteToken),
      Batch<v1::BatchCloseMrRequest, v1::BatchCloseMrResponse>(Row("MemoryService.BatchCloseMr"), CloseMr),
  };
}

}  // namespace rnicd::service
