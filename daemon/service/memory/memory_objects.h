#pragma once

#include <memory>

#include "daemon/core/memory/ticket_table.h"
#include "daemon/core/session/session.h"
#include "daemon/gate/call.h"
#include "daemon/gate/method.h"
#include "rnicd/v1/memory_service.pb.h"

namespace rnicd::service {

// The two ways to memory, which answer with a ticket for the fd socket.
class TicketedMemory {
 public:
  explicit TicketedMemory(const core::TicketTable& tickets) : tickets_(tickets) {}

  void Allocate(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                const v1::AllocateMemoryRequest& request, const gate::Reply<v1::AllocateMemoryResponse>& reply);
  void BatchAllocate(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                     const v1::BatchAllocateMemoryRequest& request, v1::BatchAllocateMemoryResponse* response);
  absl::Status Import(const core::SessionGuard& session, const v1::ImportMemoryRequest& request,
                      v1::ImportMemoryResponse* response);

 private:
  void Begin(const core::SessionGuard& session, const v1::AllocateMemoryRequest& request,
             const gate::Reply<v1::AllocateMemoryResponse>& reply) const;
  template <typename Response>
  Response ToResponse(const core::MemoryTicket& ticket) const;

  const core::TicketTable& tickets_;
};

void SealMemory(const core::SessionGuard& session, const v1::SealMemoryRequest& request,
                const gate::Reply<v1::SealMemoryResponse>& reply);
void BatchSealMemory(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                     const v1::BatchSealMemoryRequest& request, v1::BatchSealMemoryResponse* response);
void ReleaseMemory(const core::SessionGuard& session, const v1::ReleaseMemoryRequest& request,
                   const gate::Reply<v1::ReleaseMemoryResponse>& reply);

}  // namespace rnicd::service
