#include "daemon/service/memory/memory_operations.h"

#include <optional>
#include <vector>

#include "base/status.h"
#include "daemon/service/messages/pending.h"
#include "wire/memory.h"

namespace rnicd::service {
namespace {

v1::RegisterMrResponse ToResponse(const Registration& registration) {
  v1::RegisterMrResponse response;
  response.set_ntstatus(static_cast<uint32_t>(NtStatus::kSuccess));
  *response.mutable_registration() = wire::ToWire(registration);
  return response;
}

}  // namespace

void CreateMr(const core::SessionGuard& session, const v1::CreateMrRequest& request,
              const gate::Reply<v1::CreateMrResponse>& reply) {
  const auto id = session.regions().Create(ProtectionDomainId{request.pd_id()}, request.fast_register());
  if (!id.ok()) {
    reply(id.status());
    return;
  }
  v1::CreateMrResponse response;
  response.set_mr_id(id->value);
  reply(response);
}

void RegisterMr(const core::SessionGuard& session, const v1::RegisterMrRequest& request,
                const gate::Reply<v1::RegisterMrResponse>& reply) {
  const std::vector<MdlEntry> chain = wire::FromWire(request.mdl_chain());
  const core::RegisterArguments arguments{
      .region = MemoryRegionId{request.mr_id()}, .chain = chain, .length = request.length(), .flags = request.flags()};
  const core::Done<Registration> done = [reply](const absl::StatusOr<Registration>& outcome) {
    reply(outcome.ok() ? absl::StatusOr<v1::RegisterMrResponse>(ToResponse(*outcome)) : outcome.status());
  };
  ReplyToBegun(session.regions().Register(arguments, ChoiceOf(request), done), request.allow_pending(), done, reply);
}

void DeregisterMr(const core::SessionGuard& session, const v1::DeregisterMrRequest& request,
                  const gate::Reply<v1::DeregisterMrResponse>& reply) {
  const core::Done<> done = DoneOf(reply);
  ReplyToBegun(session.regions().Deregister(MemoryRegionId{request.mr_id()}, ChoiceOf(request), done),
               request.allow_pending(), done, reply);
}

void InitializeFastRegisterMr(const core::SessionGuard& session, const v1::InitializeFastRegisterMrRequest& request,
                              const gate::Reply<v1::InitializeFastRegisterMrResponse>& reply) {
  const core::InitializeArguments arguments{.region = MemoryRegionId{request.mr_id()},
                                            .max_pages = request.adapter_page_count(),
                                            .remote_access = request.remote_access()};
  const core::Done<> done = DoneOf(reply);
  ReplyToBegun(session.regions().Initialize(arguments, ChoiceOf(request), done), request.allow_pending(), done, reply);
}

void CloseMr(const core::SessionGuard& session, const v1::CloseMrRequest& request,
             const gate::Reply<v1::CloseMrResponse>& reply) {
  const core::Done<> done = DoneOf(reply);
  ReplyToBegun(session.regions().Close(MemoryRegionId{request.mr_id()}, ChoiceOf(request), done),
               request.allow_pending(), done, reply);
}

void ClosePd(const core::SessionGuard& session, const v1::ClosePdRequest& request,
             const gate::Reply<v1::ClosePdResponse>& reply) {
  const core::Done<> done = DoneOf(reply);
  ReplyToBegun(session.domains().Close(ProtectionDomainId{request.pd_id()}, ChoiceOf(request), done),
               request.allow_pending(), done, reply);
}

}  // namespace rnicd::service
