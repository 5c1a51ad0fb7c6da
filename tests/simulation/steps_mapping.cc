// Logical address mappings and memory windows.

#include <optional>
#include <string>

#include "tests/simulation/chain.h"
#include "tests/simulation/closing.h"
#include "tests/simulation/steps.h"

namespace rnicd::simulation {
namespace {

using core::RequestKind;
using core::Resource;

// NDK_LOGICAL_ADDRESS_MAPPING with its array.
uint64_t LamBytes(uint64_t pages) { return 16 + 8 * pages; }

// The mapping is public only in the model: core tells its id and its addresses.
void Publish(Scene& scene, Tenant& tenant, const std::shared_ptr<Adapter>& adapter, JudgedChain& chain,
             const core::BuiltLam& built) {
  if (built.pages != chain.pages || built.fbo != chain.base % kNdkPageBytes) {
    scene.findings.Report("CallsAreJudgedByTheRules", "the mapping has " + std::to_string(built.pages) +
                                                          " pages from byte " + std::to_string(built.fbo) + " on");
  }
  auto pages = std::make_shared<MappedPages>();
  pages->pages = PagesOf(chain);
  pages->uses = std::move(chain.uses);
  auto mapping = std::make_shared<Mapping>();
  mapping->number = scene.model.NextNumber();
  mapping->id = built.id;
  mapping->adapter = adapter;
  mapping->first = built.first.value;
  mapping->pages = pages;
  std::erase_if(tenant.pages, [](const auto& each) { return each.expired(); });
  tenant.pages.push_back(pages);
  scene.trace.Add(" lam" + std::to_string(mapping->number));
  tenant.mappings.push_back(std::move(mapping));
}

void BuildLam(Scene& scene, Tenant& tenant) {
  const AdapterId id = PickFitting(scene, tenant, &Tenant::adapters, [](const Adapter& each) { return IsOpen(each); });
  const std::shared_ptr<Adapter> adapter = FindById(tenant.adapters, id);
  const Chain chain = DrawChain(scene, tenant);
  JudgedChain judged = JudgeChain(tenant, chain);
  std::optional<uint64_t> lam_size;
  if (scene.dice.Chance(50)) {
    lam_size = LamBytes(judged.pages) - (scene.Careless() ? 1 : 0);
  }
  Call call(scene, tenant, "BuildLam on " + Name("a", adapter, id.value) + " " + chain.Text());
  if (!call.admitted()) {
    return;
  }
  Refusals why = judged.why;
  why.If(adapter == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(adapter != nullptr && adapter->closing.begun, ErrorReason::OBJECT_CLOSING);
  why.If(lam_size.has_value() && *lam_size < LamBytes(judged.pages), ErrorReason::BUFFER_TOO_SMALL);
  scene.model.JudgeQuota(tenant, Resource::kLogicalMappings, 1, why);
  scene.model.JudgeQuota(tenant, Resource::kPinnedBytes, judged.pages * kNdkPageBytes, why);
  const auto built =
      tenant.session->BuildLam({.adapter = id, .chain = chain.entries, .length = chain.length, .lam_size = lam_size});
  if (call.Accepted(built.status(), why)) {
    Publish(scene, tenant, adapter, judged, *built);
  }
}

void ReleaseLam(Scene& scene, Tenant& tenant) {
  const LogicalMappingId id = PickId(scene, tenant, &Tenant::mappings);
  const std::shared_ptr<Mapping> mapping = FindById(tenant.mappings, id);
  Call call(scene, tenant, "ReleaseLam " + Name("lam", mapping, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(mapping == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  if (call.Accepted(tenant.session->ReleaseLam(id), why)) {
    Model::Bury(tenant, id.value);
    std::erase(tenant.mappings, mapping);
    (void)scene.model.Settle(tenant);
  }
}

void CreateMw(Scene& scene, Tenant& tenant) {
  const ProtectionDomainId id =
      PickFitting(scene, tenant, &Tenant::domains, [](const Domain& each) { return IsOpen(each); });
  const std::shared_ptr<Domain> domain = FindById(tenant.domains, id);
  Call call(scene, tenant, "CreateMw in " + Name("pd", domain, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(domain == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(domain != nullptr && domain->closing.begun, ErrorReason::OBJECT_CLOSING);
  scene.model.JudgeQuota(tenant, Resource::kWindows, 1, why);
  Nic* const nic = domain != nullptr ? domain->adapter->nic : nullptr;
  if (why.none() && !scene.model.faults.Strikes(Fault::kCreateWindow, why)) {
    why.If(nic->max_keys != 0 && nic->keys >= nic->max_keys, ErrorReason::DEVICE_OUT_OF_RESOURCES);
  }
  const auto made = tenant.session->CreateMw(id);
  if (!call.Accepted(made.status(), why) || scene.world.witness.keys.empty()) {
    return;
  }
  auto window = std::make_shared<Window>();
  window->number = scene.model.NextNumber();
  window->id = *made;
  window->domain = domain;
  window->key = std::make_shared<Key>(*nic, domain->number, LocalToken{}, scene.world.witness.keys.front().remote);
  scene.trace.Add(" mw" + std::to_string(window->number));
  tenant.windows.push_back(std::move(window));
}

void GetRemoteTokenFromMw(Scene& scene, Tenant& tenant) {
  const MemoryWindowId id = PickId(scene, tenant, &Tenant::windows);
  const std::shared_ptr<Window> window = FindById(tenant.windows, id);
  Call call(scene, tenant, "GetRemoteTokenFromMw " + Name("mw", window, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(window == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(window != nullptr && !window->ever_bound, ErrorReason::WINDOW_NOT_BOUND);
  const auto token = tenant.session->GetRemoteTokenFromMw(id);
  if (call.Accepted(token.status(), why) && *token != window->key->issued) {
    scene.findings.Report("TokensAreThoseOfTheCard", "mw" + std::to_string(window->number) + " has another one");
  }
}

void CloseMw(Scene& scene, Tenant& tenant) {
  const MemoryWindowId id = PickId(scene, tenant, &Tenant::windows);
  const std::shared_ptr<Window> window = FindById(tenant.windows, id);
  const Telling telling = DrawTelling(scene, RequestKind::kCloseMw, id.value, Resource::kWindows);
  Call call(scene, tenant, "CloseMw " + Name("mw", window, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(window == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  const auto progress = tenant.session->CloseMw(id, telling.choice, scene.mailbox.DoneFor(telling.report.callback));
  if (call.Accepted(progress, why, /*must_pend=*/false)) {
    scene.model.RemoveWindow(tenant, *window);
    (void)scene.model.Settle(tenant);
  }
}

uint64_t HasMapping(const Tenant& tenant) { return tenant.mappings.empty() ? 0 : 1; }
uint64_t HasWindow(const Tenant& tenant) { return tenant.windows.empty() ? 0 : 1; }

}  // namespace

std::vector<ClientStep> MappingSteps() {
  return {
      {BuildLam,
       [](const Tenant& tenant) -> uint64_t {
         if (!HasSealed(tenant)) {
           return tenant.adapters.empty() ? 0 : 1;
         }
         return tenant.mappings.empty() ? 80 : 12;
       }},
      {ReleaseLam, [](const Tenant& tenant) { return 8 * HasMapping(tenant); }},
      {CreateMw,
       [](const Tenant& tenant) -> uint64_t { return tenant.domains.empty()   ? 0
                                                     : tenant.windows.empty() ? 60
                                                                              : 8; }},
      {GetRemoteTokenFromMw, [](const Tenant& tenant) { return 3 * HasWindow(tenant); }},
      {CloseMw, [](const Tenant& tenant) { return 6 * HasWindow(tenant); }},
  };
}

}  // namespace rnicd::simulation
