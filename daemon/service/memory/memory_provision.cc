#include "daemon/service/memory/memory_provision.h"

#include "base/status.h"
#include "daemon/service/memory/batch.h"
#include "daemon/service/messages/pending.h"
#include "wire/memory.h"

namespace rnicd::service {
namespace {

core::ProvisionArguments ProvisionArgumentsFromWire(const v1::ProvisionMemoryRequest& request) {
  core::ProvisionArguments arguments{.memory = MemoryObjectId{request.memory_id()},
                                     .domain = ProtectionDomainId{request.pd_id()}};
  arguments.ranges.reserve(static_cast<size_t>(request.items_size()));
  for (const v1::ProvisionRange& item : request.items()) {
    arguments.ranges.push_back({.byte_offset = item.byte_offset(),
                                .length = item.length(),
                                .address = VirtualAddress{item.virtual_address()},
                                .flags = item.flags()});
  }
  return arguments;
}

void Fill(const core::Provisioned& provisioned, v1::ProvisionMemoryResponse* response) {
  response->set_size(provisioned.size);
  response->set_page_size(wire::PageSizeToWire(provisioned.page_bytes));
  response->mutable_outcomes()->Reserve(static_cast<int>(provisioned.outcomes.size()));
  for (const absl::StatusOr<core::ProvisionedRegion>& region : provisioned.outcomes) {
    const int index = response->outcomes_size();
    v1::ProvisionOutcome* const outcome = response->add_outcomes();
    if (region.ok()) {
      outcome->set_mr_id(region->id.value);
      outcome->set_local_token(region->local_token.value);
      outcome->set_remote_token(region->remote_token.value);
    } else {
      *outcome->mutable_error() = ErrorOfItem(index, region.status());
    }
  }
}

std::string NoteOf(const core::Provisioned& provisioned) {
  const int count = static_cast<int>(provisioned.outcomes.size());
  BatchTally tally(count);
  for (int index = 0; index < count; ++index) {
    tally.Add(index, provisioned.outcomes[static_cast<size_t>(index)].status());
  }
  return tally.Note();
}

// A session that is ending closes them anyway.
void DropRegions(core::Session& session, const core::Provisioned& provisioned) {
  if (const absl::StatusOr<core::SessionGuard> held = session.Begin(); held.ok()) {
    held->regions().Drop(provisioned);
  }
}

void Finish(gate::Call& call, const absl::StatusOr<core::Provisioned>& provisioned,
            v1::ProvisionMemoryResponse* response) {
  if (!provisioned.ok()) {
    call.Finish(provisioned.status());
    return;
  }
  call.SetNote(NoteOf(*provisioned));
  if (!call.Finish(absl::OkStatus(), [&] { Fill(*provisioned, response); })) {
    DropRegions(*call.session(), *provisioned);  // The client never received their ids.
  }
}

}  // namespace

void ProvisionMemory(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                     const v1::ProvisionMemoryRequest& request, v1::ProvisionMemoryResponse* response) {
  if (!IsBatchSize(request.items_size())) {
    call->Finish(MakeError(ErrorReason::BATCH_SIZE, "items"));
    return;
  }
  const core::Done<core::Provisioned> done = [call, response](const absl::StatusOr<core::Provisioned>& provisioned) {
    Finish(*call, provisioned, response);
  };
  core::FinishUnlessPending(session.regions().Provision(ProvisionArgumentsFromWire(request), done), done);
}

}  // namespace rnicd::service
