#include "daemon/service/memory/memory_service.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/service/memory/batch.h"
#include "daemon/service/memory/memory_objects.h"
#include "daemon/service/memory/memory_operations.h"
#include "daemon/service/memory/memory_provision.h"
#include "daemon/service/messages/convert.h"
#include "daemon/service/messages/pending.h"
#include "rnicd/v1/memory_service.pb.h"
#include "wire/memory.h"

namespace rnicd::service {
namespace {

absl::Status CreatePd(const core::SessionGuard& session, const v1::CreatePdRequest& request,
                      v1::CreatePdResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const ProtectionDomainId id, session.domains().Create(AdapterId{request.adapter_id()}));
  response->set_pd_id(id.value);
  return absl::OkStatus();
}

absl::Status GetLocalToken(const core::SessionGuard& session, const v1::GetLocalTokenRequest& request,
                           v1::GetLocalTokenResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const LocalToken token, session.regions().GetLocalToken(MemoryRegionId{request.mr_id()}));
  response->set_local_token(token.value);
  return absl::OkStatus();
}

absl::Status GetRemoteToken(const core::SessionGuard& session, const v1::GetRemoteTokenRequest& request,
                            v1::GetRemoteTokenResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const RemoteToken token, session.regions().GetRemoteToken(MemoryRegionId{request.mr_id()}));
  response->set_remote_token(token.value);
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

uint64_t BytesToRegister(core::SessionRegions& /*regions*/, const v1::RegisterMrRequest& item) { return item.length(); }

// Registered by a region that is to be deregistered or closed.
template <typename ItemRequest>
uint64_t BytesRegistered(core::SessionRegions& regions, const ItemRequest& item) {
  return regions.RegisteredBytes(MemoryRegionId{item.mr_id()});
}

// A batch of one region request, whose handler is `operation`.
template <typename Request, typename Response, typename ItemRequest, typename ItemResponse>
gate::Method Batch(const core::Operation& row,
                   void (*operation)(const core::SessionGuard&, const ItemRequest&, const gate::Reply<ItemResponse>&),
                   const BatchRule<ItemRequest>& rule = {}) {
  return gate::Serve(row, [operation, rule](const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                                            const Request& request, Response* response) {
    RunBatch(call, session, request, response, rule, operation);
  });
}

}  // namespace

std::vector<gate::Method> MemoryMethods(const core::TicketTable& tickets) {
  using core::Row;
  using gate::Serve;
  const auto memory = std::make_shared<TicketedMemory>(tickets);
  return {
      Serve(Row("MemoryService.AllocateMemory"), gate::Bind(memory, &TicketedMemory::Allocate)),
      Serve(Row("MemoryService.ImportMemory"), gate::Bind(memory, &TicketedMemory::Import)),
      Serve(Row("MemoryService.SealMemory"), SealMemory),
      Serve(Row("MemoryService.ReleaseMemory"), ReleaseMemory),
      Serve(Row("MemoryService.CreatePd"), CreatePd),
      Serve(Row("MemoryService.ClosePd"), ClosePd),
      Serve(Row("MemoryService.CreateMr"), CreateMr),
      Serve(Row("MemoryService.RegisterMr"), RegisterMr),
      Serve(Row("MemoryService.DeregisterMr"), DeregisterMr),
      Serve(Row("MemoryService.InitializeFastRegisterMr"), InitializeFastRegisterMr),
      Serve(Row("MemoryService.GetLocalToken"), GetLocalToken),
      Serve(Row("MemoryService.GetRemoteToken"), GetRemoteToken),
      Serve(Row("MemoryService.CloseMr"), CloseMr),
      Serve(Row("MemoryService.BuildLam"), BuildLam),
      Serve(Row("MemoryService.ReleaseLam"), ReleaseLam),
      Batch<v1::BatchCreateMrRequest, v1::BatchCreateMrResponse>(Row("MemoryService.BatchCreateMr"), CreateMr),
      Batch<v1::BatchRegisterMrRequest, v1::BatchRegisterMrResponse>(Row("MemoryService.BatchRegisterMr"), RegisterMr,
                                                                     {.bytes_of = BytesToRegister, .parallel = true}),
      Batch<v1::BatchDeregisterMrRequest, v1::BatchDeregisterMrResponse>(
          Row("MemoryService.BatchDeregisterMr"), DeregisterMr,
          {.bytes_of = BytesRegistered<v1::DeregisterMrRequest>, .parallel = true}),
      Batch<v1::BatchInitializeFastRegisterMrRequest, v1::BatchInitializeFastRegisterMrResponse>(
          Row("MemoryService.BatchInitializeFastRegisterMr"), InitializeFastRegisterMr),
      Batch<v1::BatchCloseMrRequest, v1::BatchCloseMrResponse>(
          Row("MemoryService.BatchCloseMr"), CloseMr,
          {.bytes_of = BytesRegistered<v1::CloseMrRequest>, .parallel = true, .overlapping = true}),
      Serve(Row("MemoryService.BatchAllocateMemory"), gate::Bind(memory, &TicketedMemory::BatchAllocate)),
      Serve(Row("MemoryService.BatchSealMemory"), BatchSealMemory),
      Serve(Row("MemoryService.ProvisionMemory"), ProvisionMemory),
  };
}

}  // namespace rnicd::service
