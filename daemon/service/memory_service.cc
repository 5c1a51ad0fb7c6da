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
#include "daemon/service/unary.h"
#include "rnicd/v1/memory_service.grpc.pb.h"

namespace rnicd::service {
namespace {

class MemoryService final : public v1::MemoryService::CallbackService {
 public:
  MemoryService(gate::Gate gate, const core::TicketTable& tickets) : gate_(std::move(gate)), tickets_(tickets) {}

  RNICD_UNARY(AllocateMemory)
  RNICD_UNARY(ImportMemory)
  RNICD_UNARY(SealMemory)
  RNICD_UNARY(ReleaseMemory)
  RNICD_UNARY(CreatePd)
  RNICD_UNARY(ClosePd)
  RNICD_UNARY(CreateMr)
  RNICD_UNARY(RegisterMr)
  RNICD_UNARY(DeregisterMr)
  RNICD_UNARY(InitializeFastRegisterMr)
  RNICD_UNARY(GetLocalToken)
  RNICD_UNARY(GetRemoteToken)
  RNICD_UNARY(CloseMr)
  RNICD_UNARY(BuildLam)
  RNICD_UNARY(ReleaseLam)
  RNICD_UNARY(BatchCreateMr)
  RNICD_UNARY(BatchRegisterMr)
  RNICD_UNARY(BatchDeregisterMr)
  RNICD_UNARY(BatchInitializeFastRegisterMr)
  RNICD_UNARY(BatchGetLocalToken)
  RNICD_UNARY(BatchGetRemoteToken)
  RNICD_UNARY(BatchCloseMr)

 private:
  template <typename Response>
  void FillTicket(const core::MemoryTicket& ticket, Response* response) const;

  gate::Gate gate_;
  const core::TicketTable& tickets_;
};

absl::StatusOr<core::AllocateArguments> AllocateArgumentsFromWire(const v1::AllocateMemoryRequest& request) {
  core::AllocateArguments arguments{.size = request.size()};
  RNICD_ASSIGN_OR_RETURN(arguments.page_bytes, PageBytesFromWire(request.page_size()));
  if (request.has_numa_node()) {
    arguments.numa_node = request.numa_node();
  }
  return arguments;
}

}  // namespace

template <typename Response>
void MemoryService::FillTicket(const core::MemoryTicket& ticket, Response* response) const {
  response->set_memory_id(ticket.memory.value);
  response->set_fd_ticket(std::string(ticket.ticket.begin(), ticket.ticket.end()));
  response->set_ticket_lifetime_ms(static_cast<uint32_t>(tickets_.lifetime().count()));
}

grpc::ServerUnaryReactor* MemoryService::AllocateMemory(grpc::CallbackServerContext* /*context*/,
                                                        const v1::AllocateMemoryRequest* request,
                                                        v1::AllocateMemoryResponse* response) {
  return gate_.UnaryAsync(gate::Row("MemoryService.AllocateMemory"), request, response,
                          [&](const std::shared_ptr<gate::Call>& call) {
                            const auto done = [call, response, this](const absl::StatusOr<core::MemoryTicket>& ticket) {
                              const bool delivered = call->Finish(ticket.status(), [&] {
                                if (ticket.ok()) {
                                  FillTicket(*ticket, response);
                                }
                              });
                              if (!delivered && ticket.ok()) {
                                call->session()->DropMemory(ticket->memory);  // The client never received its id.
                              }
                            };
                            const auto arguments = AllocateArgumentsFromWire(*request);
                            const absl::Status begun =
                                arguments.ok() ? call->session()->AllocateMemory(*arguments, done) : arguments.status();
                            if (!begun.ok()) {
                              call->Finish(begun);
                            }
                          });
}

grpc::ServerUnaryReactor* MemoryService::ImportMemory(grpc::CallbackServerContext* /*context*/,
                                                      const v1::ImportMemoryRequest* request,
                                                      v1::ImportMemoryResponse* response) {
  return gate_.Unary(gate::Row("MemoryService.ImportMemory"), request, response, [&](gate::Call& call) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const core::MemoryTicket ticket, call.session()->ImportMemory(request->size()));
    FillTicket(ticket, response);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* MemoryService::SealMemory(grpc::CallbackServerContext* /*context*/,
                                                    const v1::SealMemoryRequest* request,
                                                    v1::SealMemoryResponse* response) {
  return gate_.UnaryAsync(gate::Row("MemoryService.SealMemory"), request, response,
                          [request, response](const std::shared_ptr<gate::Call>& call) {
                            const auto memory = call->session()->FindMemory(MemoryObjectId{request->memory_id()});
                            if (!memory.ok()) {
                              call->Finish(memory.status());
                              return;
                            }
                            const core::Done finish = [call, response, memory = *memory](const absl::Status& status) {
                              call->Finish(status, [&] {
                                if (status.ok()) {
                                  response->set_size(memory->size());
                                  response->set_page_size(PageSizeToWire(memory->page_bytes()));
                                }
                              });
                            };
                            const auto progress = call->session()->SealMemory(*memory, finish);
                            if (!progress.ok() || *progress == core::Progress::kDone) {
                              finish(progress.status());
                            }
                          });
}

grpc::ServerUnaryReactor* MemoryService::ReleaseMemory(grpc::CallbackServerContext* /*context*/,
                                                       const v1::ReleaseMemoryRequest* request,
                                                       v1::ReleaseMemoryResponse* response) {
  return gate_.UnaryAsync(
      gate::Row("MemoryService.ReleaseMemory"), request, response, [request](const std::shared_ptr<gate::Call>& call) {
        const auto finish = [call](const absl::Status& status) { call->Finish(status); };
        const auto progress = call->session()->ReleaseMemory(MemoryObjectId{request->memory_id()}, finish);
        if (!progress.ok() || *progress == core::Progress::kDone) {
          finish(progress.status());
        }
      });
}

grpc::ServerUnaryReactor* MemoryService::CreatePd(grpc::CallbackServerContext* /*context*/,
                                                  const v1::CreatePdRequest* request, v1::CreatePdResponse* response) {
  return gate_.Unary(gate::Row("MemoryService.CreatePd"), request, response, [&](gate::Call& call) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const ProtectionDomainId id, call.session()->CreatePd(AdapterId{request->adapter_id()}));
    response->set_pd_id(id.value);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* MemoryService::BuildLam(grpc::CallbackServerContext* /*context*/,
                                                  const v1::BuildLamRequest* request, v1::BuildLamResponse* response) {
  return gate_.Unary(gate::Row("MemoryService.BuildLam"), request, response, [&](gate::Call& call) -> absl::Status {
    const std::vector<core::MdlEntry> chain = FromWire(request->mdl_chain());
    core::BuildLamArguments arguments{
        .adapter = AdapterId{request->adapter_id()}, .chain = chain, .length = request->length()};
    if (request->has_lam_size()) {
      arguments.lam_size = request->lam_size();
    }
    RNICD_ASSIGN_OR_RETURN(const core::BuiltLam lam, call.session()->BuildLam(arguments));
    response->set_lam_id(lam.id.value);
    response->set_fbo(lam.fbo);
    response->mutable_adapter_page_array()->Reserve(static_cast<int>(lam.pages));
    for (uint64_t page = 0; page < lam.pages; ++page) {
      response->add_adapter_page_array(lam.first.value + page * kNdkPageBytes);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* MemoryService::ReleaseLam(grpc::CallbackServerContext* /*context*/,
                                                    const v1::ReleaseLamRequest* request,
                                                    v1::ReleaseLamResponse* response) {
  return gate_.Unary(gate::Row("MemoryService.ReleaseLam"), request, response,
                     [&](gate::Call& call) { return call.session()->ReleaseLam(LogicalMappingId{request->lam_id()}); });
}

// --- region requests: one operation each, alone or as a batch ---
#define RNICD_SINGLE(method)                                                                                          \
  grpc::ServerUnaryReactor* MemoryService::method(                                                                    \
      grpc::CallbackServerContext* /*context*/, const v1::method##Request* request, v1::method##Response* response) { \
    return gate_.UnaryAsync(gate::Row("MemoryService." #method), request, response,                                   \
                            [request, response](const std::shared_ptr<gate::Call>& call) {                            \
                              service::method(*call->session(), *request, ReplyTo(call, response));                   \
                            });                                                                                       \
  }

#define RNICD_BATCH(method)                                                                         \
  grpc::ServerUnaryReactor* MemoryService::Batch##method(grpc::CallbackServerContext* /*context*/,  \
                                                         const v1::Batch##method##Request* request, \
                                                         v1::Batch##method##Response* response) {   \
    return gate_.UnaryAsync(gate::Row("MemoryService.Batch" #method), request, response,            \
                            [request, response](const std::shared_ptr<gate::Call>& call) {          \
                              RunBatch(call, *request, response, &service::method);                 \
                            });                                                                     \
  }

RNICD_SINGLE(ClosePd)
RNICD_SINGLE(CreateMr)
RNICD_SINGLE(RegisterMr)
RNICD_SINGLE(DeregisterMr)
RNICD_SINGLE(InitializeFastRegisterMr)
RNICD_SINGLE(GetLocalToken)
RNICD_SINGLE(GetRemoteToken)
RNICD_SINGLE(CloseMr)
RNICD_BATCH(CreateMr)
RNICD_BATCH(RegisterMr)
RNICD_BATCH(DeregisterMr)
RNICD_BATCH(InitializeFastRegisterMr)
RNICD_BATCH(GetLocalToken)
RNICD_BATCH(GetRemoteToken)
RNICD_BATCH(CloseMr)

std::unique_ptr<grpc::Service> MakeMemoryService(gate::Gate gate, const core::TicketTable& tickets) {
  return std::make_unique<MemoryService>(std::move(gate), tickets);
}

}  // namespace rnicd::service
