// Regions: registered by a call, or made ready for fast registration.

#include <algorithm>
#include <array>
#include <string>

#include "base/ndk/access_rights.h"
#include "daemon/core/tenant/heap_cost.h"
#include "tests/simulation/steps/by_ring.h"
#include "tests/simulation/steps/chain.h"
#include "tests/simulation/steps/closing.h"
#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

using core::Resource;
using State = Region::State;

MemoryRegionId PickRegion(const Scene& scene, const Client& client, bool fast, State state) {
  return PickFitting(scene, client, &Client::regions, [fast, state](const Region& each) {
    return each.fast == fast && each.state == state && !each.closing.begun;
  });
}

void CreateMr(Scene& scene, Client& client) {
  const ProtectionDomainId id =
      PickFitting(scene, client, &Client::domains, [](const Domain& each) { return IsOpen(each); });
  const bool fast = scene.dice.Chance(45);
  const std::shared_ptr<Domain> domain = FindById(client.domains, id);
  Call call(scene, client, std::string("CreateMr") + (fast ? " fast" : "") + " in " + Name("pd", domain, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(domain == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(domain != nullptr && domain->closing.begun, ErrorReason::OBJECT_CLOSING);
  scene.model.CheckQuota(client, Resource::kRegions, 1, why);
  const auto made = call.session().regions().Create(id, fast);
  if (call.Accepted(made.status(), why)) {
    auto region = std::make_shared<Region>();
    region->number = scene.model.NextNumber();
    region->id = *made;
    region->domain = domain;
    region->fast = fast;
    scene.trace.Add(" mr" + std::to_string(region->number));
    client.regions.push_back(std::move(region));
  }
}

bool HasRoom(const Nic& nic) { return nic.max_keys == 0 || nic.keys < nic.max_keys; }

// The card's handling of an admitted registration.
Refusals ApplyRegister(Scene& scene, const Client& client, Region& region, const CheckedChain& chain,
                       AccessRights rights) {
  Nic& nic = *region.domain->adapter->nic;
  Refusals why = Cancelled(client);
  if (why.none() && !scene.model.faults.Strikes(Fault::kRegister, why)) {
    why.If(!HasRoom(nic), ErrorReason::DEVICE_OUT_OF_RESOURCES);
  }
  if (!why.none() || scene.world.witness.keys.empty()) {
    region.state = State::kCreated;
    region.uses.clear();
    region.pages.clear();
    region.runs = 0;
    return why;
  }
  region.state = State::kRegistered;
  region.target = std::make_shared<Target>(Target{.domain = region.domain->number,
                                                  .base = VirtualAddress{chain.base},
                                                  .length = chain.length,
                                                  .rights = nic.Resolve(rights),
                                                  .local = scene.world.witness.keys.front().local,
                                                  .remote = scene.world.witness.keys.front().remote,
                                                  .pieces = chain.pieces});
  nic.Insert(region.target);
  ++nic.keys;
  return why;
}

Registration RegistrationOf(const Region& region) {
  return {.base_address = region.target->base,
          .length = region.target->length,
          .local_token = region.target->local,
          .remote_token = region.target->remote};
}

void CheckRegistration(Scene& scene, const Region& region, const Registration& registration) {
  const Registration should = RegistrationOf(region);
  if (registration.base_address != should.base_address || registration.length != should.length ||
      registration.local_token != should.local_token || registration.remote_token != should.remote_token) {
    scene.findings.Report("TokensAreThoseOfTheCard", "mr" + std::to_string(region.number) + " has other ones");
  }
}

// Finishes a pending registration.
void FinishRegister(Scene& scene, Client& client, const std::shared_ptr<Region>& region, const Report& report,
                    const CheckedChain& chain, AccessRights rights) {
  --client.slow_requests;
  --region->requests;
  const Refusals why = ApplyRegister(scene, client, *region, chain, rights);
  const bool done = region->state == State::kRegistered;
  scene.model.Complete(client, report, why, done ? std::optional(RegistrationOf(*region)) : std::nullopt);
  const Mailbox::Letter* letter = report.to_events ? nullptr : scene.mailbox.Find(report.callback);
  if (done && letter != nullptr && letter->registration.has_value()) {
    CheckRegistration(scene, *region, *letter->registration);
  }
  (void)scene.model.Settle(client);
}

// Flags for a registration: usually all rights, sometimes fewer, rarely invalid.
uint32_t DrawFlags(const Scene& scene, Refusals& why) {
  if (scene.Careless()) {
    const bool half = scene.dice.Chance(50);
    why.If(true, half ? ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE : ErrorReason::FLAGS_UNKNOWN);
    return half ? kMrFlagRemoteWriteBit : 0x40;
  }
  const std::vector<uint32_t> usual = {kMrFlagRemoteWrite | kMrFlagRemoteRead | kMrFlagReadSink,
                                       kMrFlagRemoteWrite | kMrFlagRemoteRead,
                                       kMrFlagRemoteWrite,
                                       kMrFlagRemoteRead,
                                       kMrFlagLocalWrite,
                                       0};
  return scene.dice.Chance(60) ? usual.front() : scene.dice.Pick(usual);
}

Refusals CheckRegister(const Scene& scene, const Client& client, const std::shared_ptr<Region>& region,
                       const CheckedChain& chain) {
  Refusals why = chain.why;
  why.If(scene.model.draining, ErrorReason::DAEMON_DRAINING);
  why.If(region == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(chain.length > scene.options.soft.max_registration_bytes, ErrorReason::LENGTH_ABOVE_ADAPTER_LIMIT);
  if (region != nullptr) {
    why.If(region->fast, ErrorReason::REGION_WRONG_KIND);
    why.If(region->state == State::kRegistered, ErrorReason::REGION_ALREADY_REGISTERED);
    why.If(region->state == State::kRegistering || region->state == State::kDeregistering, ErrorReason::REGION_BUSY);
  }
  const uint64_t pending = scene.model.IsSlow(chain.length) ? 1 : 0;
  scene.model.CheckQuota(client, Resource::kPendingRequests, pending, why);
  scene.model.CheckHeap(client, {{Resource::kPendingRequests, pending}}, chain.runs * core::kHeapOfRun, why);
  scene.model.CheckPins(client, InFiles(chain.pages), why);
  return why;
}

void RegisterMr(Scene& scene, Client& client) {
  const MemoryRegionId id = PickRegion(scene, client, false, State::kCreated);
  const std::shared_ptr<Region> region = FindRegion(client, id);
  const Chain chain = DrawChain(scene, client);
  Refusals flags_why;
  const uint32_t flags = DrawFlags(scene, flags_why);
  ReportPlan report_plan = DrawReportPlan(scene, core::RequestKind::kRegisterMr, id.value, Resource::kPendingRequests);
  Call call(scene, client, "RegisterMr " + Name("mr", region, id.value) + " " + chain.Text());
  if (!call.admitted()) {
    return;
  }
  auto checked = std::make_shared<CheckedChain>(CheckChain(client, chain));
  Refusals why = CheckRegister(scene, client, region, *checked);
  why.Add(flags_why);
  const bool slow = scene.model.IsSlow(chain.length);
  const AccessRights rights = AccessRightsFromMrFlags(flags).value_or(AccessRights{});
  if (why.none()) {
    region->uses = std::move(checked->uses);
    region->pages = InFiles(checked->pages);
    region->runs = checked->runs;
    region->state = State::kRegistering;
  }
  const bool admitted = why.none();
  const core::RegisterArguments arguments{.region = id, .chain = chain.entries, .length = chain.length, .flags = flags};
  const auto outcome = RegisterEitherWay(scene, client, call.session(), arguments, report_plan);
  if (admitted && slow) {
    if (call.Accepted(outcome.status(), why)) {
      scene.trace.Add(", pending");
      ++client.slow_requests;
      ++region->requests;
      scene.model.PostToWorker(client, "register mr" + std::to_string(region->number),
                               [&scene, &client, region, report = report_plan.report, checked, rights] {
                                 FinishRegister(scene, client, region, report, *checked, rights);
                               });
    }
    return;
  }
  if (admitted) {
    why = ApplyRegister(scene, client, *region, *checked, rights);
  }
  if (call.Accepted(outcome.status(), why) && !outcome.pending()) {
    CheckRegistration(scene, *region, *outcome.outcome());
  }
}

// Registrations and mappings of the client that hold the page.
int64_t HoldersOf(const Client& client, const FilePage& page) {
  int64_t holders = 0;
  for (const auto& region : client.regions) {
    holders += std::count(region->pages.begin(), region->pages.end(), page);
  }
  for (const auto& each : client.pages) {
    if (const std::shared_ptr<const MappedPages> mapped = each.lock(); mapped != nullptr) {
      holders += std::count_if(mapped->pages.begin(), mapped->pages.end(),
                               [&page](const MappedPages::Page& held) { return held.in_file() == page; });
    }
  }
  return holders;
}

// Plants the canary on a page that one other registration of the session still holds: with two, nothing would show yet.
void MayGiveBackEarly(Scene& scene, const Client& client, const std::vector<FilePage>& pages) {
  for (const auto& memory : client.memories) {
    for (const FilePage& page : pages) {
      const bool held_once =
          memory->file != nullptr && memory->file->number == page.first && HoldersOf(client, page) == 1;
      const auto object = FindObject(client, memory->id);
      if (held_once && object.ok() && scene.world.witness.Plants(Canary::kPageGivenBackEarly)) {
        (*object)->pins()->Remove(std::array{core::PageRun{.first = page.second, .count = 1}});
      }
    }
  }
}

Refusals ApplyDeregister(Scene& scene, Client& client, Region& region) {
  Refusals why = Cancelled(client);
  if (why.none() && !scene.model.faults.Strikes(Fault::kDeregister, why)) {
    why.If(region.target->windows > 0, ErrorReason::REGION_HAS_WINDOWS);
  }
  region.state = why.none() ? State::kCreated : State::kRegistered;
  if (why.none()) {
    const std::vector<FilePage> pages = region.pages;
    scene.model.Deregister(client, region);
    MayGiveBackEarly(scene, client, pages);
  }
  return why;
}

void DeregisterMr(Scene& scene, Client& client) {
  const MemoryRegionId id = PickRegion(scene, client, false, State::kRegistered);
  const std::shared_ptr<Region> region = FindRegion(client, id);
  ReportPlan report_plan =
      DrawReportPlan(scene, core::RequestKind::kDeregisterMr, id.value, Resource::kPendingRequests);
  Call call(scene, client, "DeregisterMr " + Name("mr", region, id.value));
  if (!call.admitted()) {
    return;
  }
  const bool registered = region != nullptr && region->state == State::kRegistered;
  const bool slow = scene.model.IsSlow(registered ? region->target->length : 0);
  Refusals why;
  why.If(region == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  if (region != nullptr) {
    why.If(region->fast, ErrorReason::REGION_WRONG_KIND);
    why.If(region->state == State::kCreated, ErrorReason::REGION_NOT_REGISTERED);
    why.If(region->state == State::kRegistering || region->state == State::kDeregistering, ErrorReason::REGION_BUSY);
  }
  if (slow) {
    scene.model.CheckQuota(client, Resource::kPendingRequests, 1, why);
  } else if (why.none()) {
    why = ApplyDeregister(scene, client, *region);
  }
  const auto progress = DeregisterEitherWay(scene, client, call.session(), id, report_plan);
  if (!call.Accepted(progress, why, slow) || !slow) {
    return;
  }
  region->state = State::kDeregistering;
  ++region->requests;
  ++client.slow_requests;
  scene.model.PostToWorker(client, "deregister mr" + std::to_string(region->number),
                           [&scene, &client, region, report = report_plan.report] {
                             --client.slow_requests;
                             --region->requests;
                             scene.model.Complete(client, report, ApplyDeregister(scene, client, *region));
                             (void)scene.model.Settle(client);
                           });
}

void CloseMr(Scene& scene, Client& client) {
  const MemoryRegionId id = PickId(scene, client, &Client::regions);
  const std::shared_ptr<Region> region = FindRegion(client, id);
  const ReportPlan report_plan = DrawReportPlan(scene, core::RequestKind::kCloseMr, id.value, Resource::kRegions);
  Call call(scene, client, "CloseMr " + Name("mr", region, id.value));
  if (!call.admitted()) {
    return;
  }
  bool must_pend = false;
  const Refusals why = CheckClose(client, region, must_pend);
  const bool registered = region != nullptr && region->state == State::kRegistered;
  const bool slow = scene.model.IsSlow(registered ? region->target->length : 0);
  const auto progress =
      call.session().regions().Close(id, report_plan.choice, scene.mailbox.DoneFor(report_plan.report.callback));
  if (!call.Accepted(progress, why, must_pend || slow)) {
    return;
  }
  if (slow) {
    ++region->requests;
    scene.model.PostToWorker(client, "close mr" + std::to_string(region->number), [&scene, &client, region] {
      --region->requests;
      (void)scene.model.Settle(client);
    });
  }
  Close(scene, client, *region, must_pend || slow, report_plan.report);
}

Refusals ApplyInitialize(Scene& scene, const Client& client, Region& region) {
  Nic& nic = *region.domain->adapter->nic;
  Refusals why = Cancelled(client);
  if (why.none() && !scene.model.faults.Strikes(Fault::kCreateFastRegion, why)) {
    why.If(region.fast_pages > scene.options.soft.max_fast_register_pages, ErrorReason::PAGE_COUNT_UNSUPPORTED);
    why.If(!HasRoom(nic), ErrorReason::DEVICE_OUT_OF_RESOURCES);
  }
  if (!why.none() || scene.world.witness.keys.empty()) {
    region.state = State::kCreated;
    region.fast_pages = 0;
    return why;
  }
  const Witness::Keys& keys = scene.world.witness.keys.front();
  region.state = State::kInitialized;
  region.key = std::make_shared<Key>(nic, region.domain->number, keys.local, keys.remote);
  return why;
}

void InitializeFastRegisterMr(Scene& scene, Client& client) {
  const MemoryRegionId id = PickRegion(scene, client, true, State::kCreated);
  const std::shared_ptr<Region> region = FindRegion(client, id);
  const auto pages = static_cast<uint32_t>(scene.Careless() ? scene.dice.Below(2) * 17 : scene.dice.Between(1, 8));
  const bool remote_access = scene.dice.Chance(80);
  const ReportPlan report_plan =
      DrawReportPlan(scene, core::RequestKind::kInitializeFastRegisterMr, id.value, Resource::kPendingRequests);
  Call call(scene, client, "InitializeFastRegisterMr " + Name("mr", region, id.value) + " " + std::to_string(pages));
  if (!call.admitted()) {
    return;
  }
  const bool slow = scene.model.IsSlow(pages * kNdkPageBytes);
  Refusals why;
  why.If(region == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(pages == 0, ErrorReason::FIELD_OUT_OF_RANGE);
  if (region != nullptr) {
    why.If(!region->fast, ErrorReason::REGION_WRONG_KIND);
    why.If(region->state == State::kInitialized, ErrorReason::REGION_ALREADY_INITIALIZED);
    why.If(region->state == State::kInitializing, ErrorReason::REGION_BUSY);
  }
  if (slow) {
    scene.model.CheckQuota(client, Resource::kPendingRequests, 1, why);
  }
  scene.model.CheckQuota(client, Resource::kFastRegisterPages, pages, why);
  const bool admitted = why.none();
  const auto progress =
      call.session().regions().Initialize({.region = id, .max_pages = pages, .remote_access = remote_access},
                                          report_plan.choice, scene.mailbox.DoneFor(report_plan.report.callback));
  if (admitted) {
    region->fast_pages = pages;
    region->remote_access = remote_access;
    region->state = State::kInitializing;
  }
  if (admitted && !slow) {
    why = ApplyInitialize(scene, client, *region);
  }
  if (!call.Accepted(progress, why, slow) || !slow) {
    return;
  }
  ++region->requests;
  ++client.slow_requests;
  scene.model.PostToWorker(client, "initialize mr" + std::to_string(region->number),
                           [&scene, &client, region, report = report_plan.report] {
                             --client.slow_requests;
                             --region->requests;
                             scene.model.Complete(client, report, ApplyInitialize(scene, client, *region));
                             (void)scene.model.Settle(client);
                           });
}

template <typename Token>
void CheckToken(Scene& scene, Call& call, const absl::StatusOr<Token>& token, const Refusals& why,
                const std::shared_ptr<Region>& region, Token of_normal, Token of_fast) {
  if (call.Accepted(token.status(), why) && *token != (region->fast ? of_fast : of_normal)) {
    scene.findings.Report("TokensAreThoseOfTheCard", "mr" + std::to_string(region->number) + " has another one");
  }
}

void GetToken(Scene& scene, Client& client) {
  const MemoryRegionId id = PickId(scene, client, &Client::regions);
  const std::shared_ptr<Region> region = FindRegion(client, id);
  const bool local = scene.dice.Chance(50);
  Call call(scene, client, std::string(local ? "GetLocalToken " : "GetRemoteToken ") + Name("mr", region, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(region == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  if (region != nullptr) {
    why.If(!region->fast && region->state != State::kRegistered, ErrorReason::REGION_NOT_REGISTERED);
    why.If(region->fast && region->state != State::kInitialized, ErrorReason::REGION_NOT_INITIALIZED);
  }
  const bool has_target = region != nullptr && region->target != nullptr;
  const bool has_key = region != nullptr && region->key != nullptr;
  if (local) {
    CheckToken(scene, call, call.session().regions().GetLocalToken(id), why, region,
               has_target ? region->target->local : LocalToken{}, has_key ? region->key->local : LocalToken{});
  } else {
    CheckToken(scene, call, GetRemoteTokenEitherWay(scene, client, call.session(), id), why, region,
               has_target ? region->target->remote : RemoteToken{}, has_key ? region->key->issued : RemoteToken{});
  }
}

uint64_t HasRegion(const Client& client) { return client.regions.empty() ? 0 : 1; }

bool AnyRegion(const Client& client, bool fast, State state) {
  return std::any_of(client.regions.begin(), client.regions.end(),
                     [&](const auto& region) { return region->fast == fast && region->state == state; });
}

}  // namespace

std::vector<ClientStep> RegionSteps() {
  return {
      {CreateMr,
       [](const Client& client) -> uint64_t {
         return client.domains.empty() ? 0 : client.regions.size() < 3 ? 80 : 20;
       }},
      {RegisterMr,
       [](const Client& client) -> uint64_t {
         return !HasSealed(client) ? HasRegion(client) : AnyRegion(client, false, State::kCreated) ? 100 : 3;
       }},
      {DeregisterMr,
       [](const Client& client) -> uint64_t { return AnyRegion(client, false, State::kRegistered) ? 10 : 2; }},
      {CloseMr, [](const Client& client) { return 8 * HasRegion(client); }},
      {InitializeFastRegisterMr,
       [](const Client& client) -> uint64_t { return AnyRegion(client, true, State::kCreated) ? 80 : 2; }},
      {GetToken, [](const Client& client) { return 6 * HasRegion(client); }},
  };
}

}  // namespace rnicd::simulation
