#include "daemon/service/memory/memory_objects.h"

#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "daemon/service/memory/batch.h"
#include "daemon/service/messages/convert.h"
#include "daemon/service/messages/pending.h"
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

// A session that is ending releases it anyway.
void DropMemory(core::Session& session, MemoryObjectId id) {
  if (const absl::StatusOr<core::SessionGuard> held = session.Begin(); held.ok()) {
    held->memory().Drop(id);
  }
}

// The objects that a batch has made, in case that its client never receives their ids.
// Threads: safe.
class MadeByBatch {
 public:
  void Add(MemoryObjectId id) {
    MutexLock lock(mutex_);
    ids_.push_back(id);
  }
  void DropAll(core::Session& session) {
    std::vector<MemoryObjectId> ids;
    {
      MutexLock lock(mutex_);
      ids.swap(ids_);
    }
    for (const MemoryObjectId id : ids) {
      DropMemory(session, id);
    }
  }

 private:
  Mutex mutex_;
  std::vector<MemoryObjectId> ids_ RNICD_GUARDED_BY(mutex_);
};

// What a batch costs beyond the call that was counted.
void CountItems(const core::SessionGuard& session, int items) {
  if (IsBatchSize(items)) {
    session.memory().CountItems(static_cast<uint64_t>(items) - 1);
  }
}

}  // namespace

template <typename Response>
Response TicketedMemory::ToResponse(const core::MemoryTicket& ticket) const {
  Response response;
  response.set_memory_id(ticket.memory.value);
  response.set_fd_ticket(ToWire(ticket.ticket));
  response.set_ticket_lifetime_ms(static_cast<uint32_t>(tickets_.lifetime().count()));
  return response;
}

void TicketedMemory::Begin(const core::SessionGuard& session, const v1::AllocateMemoryRequest& request,
                           const gate::Reply<v1::AllocateMemoryResponse>& reply) const {
  const auto arguments = AllocateArgumentsFromWire(request);
  if (!arguments.ok()) {
    reply(arguments.status());
    return;
  }
  const core::Done<core::MemoryTicket> done = [this, reply](const absl::StatusOr<core::MemoryTicket>& ticket) {
    if (!ticket.ok()) {
      return reply(ticket.status());
    }
    auto response = ToResponse<v1::AllocateMemoryResponse>(*ticket);
    response.set_page_size(wire::PageSizeToWire(ticket->page_bytes));
    response.set_transparent_huge_pages(ticket->transparent_huge_pages);
    response.set_from_pool(ticket->from_pool);
    return reply(std::move(response));
  };
  core::FinishUnlessPending(session.memory().Allocate(*arguments, done), done);
}

void TicketedMemory::Allocate(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                              const v1::AllocateMemoryRequest& request,
                              const gate::Reply<v1::AllocateMemoryResponse>& reply) {
  Begin(session, request, [call, reply](const absl::StatusOr<v1::AllocateMemoryResponse>& allocated) {
    const bool is_delivered = reply(allocated);
    if (!is_delivered && allocated.ok()) {
      DropMemory(*call->session(), MemoryObjectId{allocated->memory_id()});  // The client never received its id.
    }
    return is_delivered;
  });
}

void TicketedMemory::BatchAllocate(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                                   const v1::BatchAllocateMemoryRequest& request,
                                   v1::BatchAllocateMemoryResponse* response) {
  CountItems(session, request.items_size());
  const auto made = std::make_shared<MadeByBatch>();
  const auto allocate = [this, made](const core::SessionGuard& held, const v1::AllocateMemoryRequest& item,
                                     const gate::Reply<v1::AllocateMemoryResponse>& reply) {
    Begin(held, item, [made, reply](const absl::StatusOr<v1::AllocateMemoryResponse>& allocated) {
      if (allocated.ok()) {
        made->Add(MemoryObjectId{allocated->memory_id()});
      }
      return reply(allocated);
    });
  };
  RunBatch(call, session, request, response, BatchRule<v1::AllocateMemoryRequest>{.overlapping = true}, allocate,
           [call, made] { made->DropAll(*call->session()); });
}

absl::Status TicketedMemory::Import(const core::SessionGuard& session, const v1::ImportMemoryRequest& request,
                                    v1::ImportMemoryResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const core::MemoryTicket ticket, session.memory().Import(request.size()));
  *response = ToResponse<v1::ImportMemoryResponse>(ticket);
  return absl::OkStatus();
}

void SealMemory(const core::SessionGuard& session, const v1::SealMemoryRequest& request,
                const gate::Reply<v1::SealMemoryResponse>& reply) {
  const auto memory = session.memory().Find(MemoryObjectId{request.memory_id()});
  if (!memory.ok()) {
    reply(memory.status());
    return;
  }
  const core::Done<> done = [reply, memory = *memory](const absl::Status& status) {
    if (!status.ok()) {
      return reply(status);
    }
    v1::SealMemoryResponse response;
    response.set_size(memory->size());
    response.set_page_size(wire::PageSizeToWire(memory->page_bytes()));
    response.set_dmabuf(memory->is_dmabuf());
    return reply(response);
  };
  core::FinishUnlessPending(session.memory().Seal(*memory, done), done);
}

void BatchSealMemory(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                     const v1::BatchSealMemoryRequest& request, v1::BatchSealMemoryResponse* response) {
  CountItems(session, request.items_size());
  RunBatch(call, session, request, response, BatchRule<v1::SealMemoryRequest>{}, SealMemory);
}

void ReleaseMemory(const core::SessionGuard& session, const v1::ReleaseMemoryRequest& request,
                   const gate::Reply<v1::ReleaseMemoryResponse>& reply) {
  const core::Done<> done = DoneOf(reply);
  core::FinishUnlessPending(session.memory().Release(MemoryObjectId{request.memory_id()}, done), done);
}

}  // namespace rnicd::service
