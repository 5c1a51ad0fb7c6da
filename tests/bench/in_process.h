#pragma once

#include <future>
#include <memory>
#include <span>

#include "base/system/os.h"
#include "daemon/core/session/wired_node_test.h"
#include "provider/soft/soft_provider.h"
#include "tests/bench/bench.h"

namespace rnicd::bench {

// A core with one session and one sealed memory object, without a daemon process, sockets or gRPC. No request pends, so
// that a row shows the cost of the operation itself.
class InProcess {
 public:
  // `most_named` and `uid_limits`: settings of the tenants.
  explicit InProcess(uint64_t bytes, size_t most_named = core::kNamedTenants, const core::Limits& uid_limits = {})
      : wired_({.os = SystemOs(),
                .clock = clock_,
                .random = random_,
                .provider = provider_,
                .observer = observer_,
                .workers = workers_,
                .reapers = workers_,
                .limits = {.pending_threshold_bytes = UINT64_MAX},
                .policy = core::OneTenantForEachUid(uid_limits),
                .ticket_lifetime = std::chrono::minutes(1),
                .most_named = most_named}) {
    session_ = *registry().Open(core::Caller{}, "bench");
    adapter_ = *session_->Begin()->adapters().Open("soft0", NdkVersion{1, 2});
    pd_ = *session_->Begin()->domains().Create(adapter_);
    memory_ = AllocateSealed(*session_, bytes);
  }
  ~InProcess() {
    registry().End(session_, core::EndCause::kClosed, nullptr);
    registry().WaitUntilEmpty(clock_.Now() + std::chrono::minutes(1));
  }

  core::Session& session() { return *session_; }
  AdapterId adapter() const { return adapter_; }
  ProtectionDomainId pd() const { return pd_; }
  MemoryObjectId memory() const { return memory_; }

  MemoryRegionId CreateMr(bool fast_register = false) {
    return *session_->Begin()->regions().Create(pd_, fast_register);
  }

  bool Register(MemoryRegionId region, uint64_t offset, uint64_t bytes) {
    const MdlEntry entry{.memory_id = memory_,
                         .byte_offset = offset,
                         .byte_count = bytes,
                         .virtual_address = VirtualAddress{kBase + offset}};
    return Register(region, std::span(&entry, 1), bytes);
  }
  bool Register(MemoryRegionId region, std::span<const MdlEntry> chain, uint64_t bytes) {
    return session_->Begin()
        ->regions()
        .Register({.region = region, .chain = chain, .length = bytes, .flags = kMrFlagRemoteWrite}, {}, nullptr)
        .ok();
  }
  core::Node& node() { return wired_.node; }
  core::SessionRegistry& registry() { return wired_.registry; }
  // A session of another tenant; the caller ends it.
  std::shared_ptr<core::Session> OpenSession(uid_t uid) {
    return *registry().Open(core::Caller{.process = {.high = uid, .low = uid}, .uid = uid}, "bench");
  }
  static bool RegisterOnePage(core::Session& session) {
    const MemoryObjectId memory = AllocateSealed(session, kNdkPageBytes);
    const ProtectionDomainId pd =
        *session.Begin()->domains().Create(*session.Begin()->adapters().Open("soft0", NdkVersion{1, 2}));
    const MdlEntry entry{.memory_id = memory, .byte_count = kNdkPageBytes, .virtual_address = VirtualAddress{kBase}};
    return session.Begin()
        ->regions()
        .Register({.region = *session.Begin()->regions().Create(pd, false),
                   .chain = std::span(&entry, 1),
                   .length = kNdkPageBytes},
                  {}, nullptr)
        .ok();
  }
  bool Deregister(MemoryRegionId region) { return session_->Begin()->regions().Deregister(region, {}, nullptr).ok(); }

 private:
  static MemoryObjectId AllocateSealed(core::Session& session, uint64_t bytes) {
    std::promise<MemoryObjectId> allocated;
    const core::MaybePending<core::MemoryTicket> begun = session.Begin()->memory().Allocate(
        {.size = bytes},
        [&](const absl::StatusOr<core::MemoryTicket>& ticket) { allocated.set_value(ticket->memory); });
    const MemoryObjectId id = begun.ok() ? allocated.get_future().get() : MemoryObjectId{};
    const std::shared_ptr<core::MemoryObject> memory = *session.Begin()->memory().Find(id);
    return memory->DuplicateFile().ok() && memory->Seal().ok() ? id : MemoryObjectId{};
  }

  SteadyClock clock_;
  KernelRandom random_;
  core::NullObserver observer_;
  provider::SoftProvider provider_{{}, random_};
  core::WiredNode wired_;
  // Declared behind the node, so that its thread is joined first.
  core::WorkerPool workers_{1};
  std::shared_ptr<core::Session> session_;
  AdapterId adapter_;
  ProtectionDomainId pd_;
  MemoryObjectId memory_;
};

}  // namespace rnicd::bench
