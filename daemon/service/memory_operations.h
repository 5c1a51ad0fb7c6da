#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "daemon/core/session/session.h"
#include "rnicd/v1/memory_service.pb.h"

// Memory-region requests, each for a single call and for an item of a batch. Each calls `reply` exactly once, either
// before it returns or later on another thread.
namespace rnicd::service {

template <typename Response>
using Reply = std::function<void(const absl::StatusOr<Response>&)>;

void CreateMr(const core::SessionGuard& session, const v1::CreateMrRequest& request,
              const Reply<v1::CreateMrResponse>& reply);
void RegisterMr(const core::SessionGuard& session, const v1::RegisterMrRequest& request,
                const Reply<v1::RegisterMrResponse>& reply);
void DeregisterMr(const core::SessionGuard& session, const v1::DeregisterMrRequest& request,
                  const Reply<v1::DeregisterMrResponse>& reply);
void InitializeFastRegisterMr(const core::SessionGuard& session, const v1::InitializeFastRegisterMrRequest& request,
                              const Reply<v1::InitializeFastRegisterMrResponse>& reply);
void CloseMr(const core::SessionGuard& session, const v1::CloseMrRequest& request,
             const Reply<v1::CloseMrResponse>& reply);
void ClosePd(const core::SessionGuard& session, const v1::ClosePdRequest& request,
             const Reply<v1::ClosePdResponse>& reply);
void GetLocalToken(const core::SessionGuard& session, const v1::GetLocalTokenRequest& request,
                   const Reply<v1::GetLocalTokenResponse>& reply);
void GetRemoteToken(const core::SessionGuard& session, const v1::GetRemoteTokenRequest& request,
                    const Reply<v1::GetRemoteTokenResponse>& reply);

}  // namespace rnicd::service
