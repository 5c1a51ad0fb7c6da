#include "daemon/service/memory_operations.h"

#include <optional>
#include <vector>

#include "base/status.h"
#include "daemon/service/pending.h"
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

void CreateMr(core::Session& session, const v1::CreateMrRequest& request, const Reply<v1::CreateMrResponse>& reply) {
  const auto id = session.CreateMr(ProtectionDomainId{request.pd_id()}, request.fast_register());
  if (!id.ok()) {
    return reply(id.status());
  }
  v1::CreateMrResponse response;
  response.set_mr_id(id->value);
  reply(response);
}

void RegisterMr(core::Session& session, const v1::RegisterMrRequest& request,
                const Reply<v1::RegisterMrResponse>& reply) {
  const std::vector<MdlEntry> chain = wire::FromWire(request.mdl_chain());
  const core::RegisterArguments arguments{
      .region = MemoryRegionId{request.mr_id()}, .chain = chain, .length = request.length(), .flags = request.flags()};
  const auto done = [reply](const absl::StatusOr<Registration>& outcome) {
    reply(outcome.ok() ? absl::StatusOr<v1::RegisterMrResponse>(ToResponse(*outcome)) : outcome.status());
  };
  const absl::StatusOr<std::optional<Registration>> outcome = session.RegisterMr(arguments, ChoiceOf(request), done);
  if (!outcome.ok()) {
    reply(outcome.status());
  } else if (outcome->has_value()) {
    reply(ToResponse(**outcome));
  } else if (request.allow_pending()) {
    reply(WithNtStatus<v1::RegisterMrResponse>(NtStatus::kPending));
  }
}

void DeregisterMr(core::Session& session, const v1::DeregisterMrRequest& request,
                  const Reply<v1::DeregisterMrResponse>& reply) {
  const auto progress = session.DeregisterMr(MemoryRegionId{request.mr_id()}, ChoiceOf(request), DoneOf(reply));
  ReplyToProgress(progress, request.allow_pending(), reply);
}

void InitializeFastRegisterMr(core::Session& session, const v1::InitializeFastRegisterMrRequest& request,
                              const Reply<v1::InitializeFastRegisterMrResponse>& reply) {
  const core::InitializeArguments arguments{.region = MemoryRegionId{request.mr_id()},
                                            .max_pages = request.adapter_page_count(),
                                            .remote_access = request.remote_access()};
  const auto progress = session.InitializeFastRegisterMr(arguments, ChoiceOf(request), DoneOf(reply));
  ReplyToProgress(progress, request.allow_pending(), reply);
}

void CloseMr(core::Session& session, const v1::CloseMrRequest& request, const Reply<v1::CloseMrResponse>& reply) {
  const auto progress = session.CloseMr(MemoryRegionId{request.mr_id()}, ChoiceOf(request), DoneOf(reply));
  ReplyToProgress(progress, request.allow_pending(), reply);
}

void ClosePd(core::Session& session, const v1::ClosePdRequest& request, const Reply<v1::ClosePdResponse>& reply) {
  const auto progress = session.ClosePd(ProtectionDomainId{request.pd_id()}, ChoiceOf(request), DoneOf(reply));
  ReplyToProgress(progress, request.allow_pending(), reply);
}

void GetLocalToken(core::Session& session, const v1::GetLocalTokenRequest& request,
                   const Reply<v1::GetLocalTokenResponse>& reply) {
  const auto token = session.GetLocalToken(MemoryRegionId{request.mr_id()});
  if (!token.ok()) {
    return reply(token.status());
  }
  v1::GetLocalTokenResponse response;
  response.set_local_token(token->value);
  reply(response);
}

void GetRemoteToken(core::Session& session, const v1::GetRemoteTokenRequest& request,
                    const Reply<v1::GetRemoteTokenResponse>& reply) {
  const auto token = session.GetRemoteToken(MemoryRegionId{request.mr_id()});
  if (!token.ok()) {
    return reply(token.status());
  }
  v1::GetRemoteTokenResponse response;
  response.set_remote_token(token->value);
  reply(response);
}

}  // namespace rnicd::service
