#pragma once

#include "daemon/core/session/session.h"
#include "daemon/gate/method.h"
#include "rnicd/v1/memory_service.pb.h"

// Memory-region requests, each for a single call and for an item of a batch. Each calls `reply` exactly once, either
// before it returns or later on another thread.
namespace rnicd::service {

void CreateMr(const core::SessionGuard& session, const v1::CreateMrRequest& request,
              const gate::Reply<v1::CreateMrResponse>& reply);
void RegisterMr(const core::SessionGuard& session, const v1::RegisterMrRequest& request,
                const gate::Reply<v1::RegisterMrResponse>& reply);
void DeregisterMr(const core::SessionGuard& session, const v1::DeregisterMrRequest& request,
                  const gate::Reply<v1::DeregisterMrResponse>& reply);
void InitializeFastRegisterMr(const core::SessionGuard& session, const v1::InitializeFastRegisterMrRequest& request,
                              const gate::Reply<v1::InitializeFastRegisterMrResponse>& reply);
void CloseMr(const core::SessionGuard& session, const v1::CloseMrRequest& request,
             const gate::Reply<v1::CloseMrResponse>& reply);
void ClosePd(const core::SessionGuard& session, const v1::ClosePdRequest& request,
             const gate::Reply<v1::ClosePdResponse>& reply);

}  // namespace rnicd::service
