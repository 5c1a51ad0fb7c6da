#include "daemon/service/memory_service.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/service/batch.h"
#include "daemon/service/convert.h"
#include "daemon/service/memory_objects.h"
#include "daemon/service/memory_operations.h"
#include "daemon/service/memory_provision.h"
#include "daemon/service/pending.h"
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
                   void (*operation)(const core::SessionGuard&, const ItemRequest&, const Reply<ItemResponse>&),
                   const BatchRule<ItemRequest>& rule = {}) {
  return gate::Later(row, [operation, rule](const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                                            const Request& request, Response* response) {
    RunBatch(call, session, request, response, rule, operation);
  });
}

}  // namespace

std::vector<gate::Method> MemoryMethods(const core::TicketTable& tickets) {
  using core::Row;
  using gate::Later;
  using gate::Now;
  const auto memory = std::make_shared<TicketedMemory>(tickets);
  return {
      Later(Row("MemoryService.AllocateMemory"), gate::Bind(memory, &TicketedMemory::Allocate)),
      Now(Row("MemoryService.ImportMemory"), gate::Bind(memory, &TicketedMemory::Import)),
      Single(Row("MemoryService.SealMemory"), SealMemory),
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
      Later(Row("MemoryService.BatchAllocateMemory"), gate::Bind(memory, &TicketedMemory::BatchAllocate)),
      Later(Row("MemoryService.BatchSealMemory"), BatchSealMemory),
      Later(Row("MemoryService.ProvisionMemory"), ProvisionMemory),
  };
}

}  // namespace rnicd::service
