// Logical address mappings and memory windows.

#include <optional>
#include <string>

#include "daemon/core/tenant/heap_cost.h"
#include "tests/simulation/steps/chain.h"
#include "tests/simulation/steps/closing.h"
#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

using core::Resource;

// NDK_LOGICAL_ADDRESS_MAPPING with its array.
uint64_t LamBytes(uint64_t pages) { return 16 + 8 * pages; }

// Adds the mapping to the model with the id and addresses that core returned.
void Publish(Scene& scene, Client& client, const std::shared_ptr<Adapter>& adapter, CheckedChain& chain,
             const core::BuiltLam& built) {
  if (built.pages != chain.pages.size() || built.fbo != chain.base % kNdkPageBytes) {
    scene.findings.Report("CallsAreJudgedByTheRules", "the mapping has " + std::to_string(built.pages) +
                                                          " pages from byte " + std::to_string(built.fbo) + " on");
  }
  auto pages = std::make_shared<MappedPages>();
  pages->pages = chain.pages;
  pages->runs = chain.runs;
  pages->uses = std::move(chain.uses);
  auto mapping = std::make_shared<Mapping>();
  mapping->number = scene.model.NextNumber();
  mapping->id = built.id;
  mapping->adapter = adapter;
  mapping->first = built.first.value;
  mapping->pages = pages;
  std::erase_if(client.pages, [](const auto& each) { return each.expired(); });
  client.pages.push_back(pages);
  scene.trace.Add(" lam" + std::to_string(mapping->number));
  client.mappings.push_back(std::move(mapping));
}

void BuildLam(Scene& scene, Client& client) {
  const AdapterId id = PickFitting(scene, client, &Client::adapters, [](const Adapter& each) { return IsOpen(each); });
  const std::shared_ptr<Adapter> adapter = FindById(client.adapters, id);
  const Chain chain = DrawChain(scene, client);
  CheckedChain checked = CheckChain(client, chain);
  std::optional<uint64_t> lam_size;
  if (scene.dice.Chance(50)) {
    lam_size = LamBytes(checked.pages.size()) - (scene.Careless() ? 1 : 0);
  }
  Call call(scene, client, "BuildLam on " + Name("a", adapter, id.value) + " " + chain.Text());
  if (!call.admitted()) {
    return;
  }
  Refusals why = checked.why;
  why.If(scene.model.draining, ErrorReason::DAEMON_DRAINING);
  why.If(adapter == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(adapter != nullptr && adapter->closing.begun, ErrorReason::OBJECT_CLOSING);
  why.If(lam_size.has_value() && *lam_size < LamBytes(checked.pages.size()), ErrorReason::BUFFER_TOO_SMALL);
  scene.model.CheckQuota(client, Resource::kLogicalMappings, 1, why);
  scene.model.CheckQuota(client, Resource::kLogicalPages, checked.pages.size(), why);
  scene.model.CheckHeap(client, {{Resource::kLogicalMappings, 1}, {Resource::kLogicalPages, checked.pages.size()}},
                        checked.runs * core::kHeapOfRun, why);
  scene.model.CheckPins(client, InFiles(checked.pages), why);
  const auto built = call.session().mappings().Build(
      {.adapter = id, .chain = chain.entries, .length = chain.length, .lam_size = lam_size});
  if (call.Accepted(built.status(), why)) {
    Publish(scene, client, adapter, checked, *built);
  }
}

void ReleaseLam(Scene& scene, Client& client) {
  const LogicalMappingId id = PickId(scene, client, &Client::mappings);
  const std::shared_ptr<Mapping> mapping = FindById(client.mappings, id);
  Call call(scene, client, "ReleaseLam " + Name("lam", mapping, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(mapping == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  if (call.Accepted(call.session().mappings().Release(id), why)) {
    Model::Bury(client, id.value);
    std::erase(client.mappings, mapping);
    (void)scene.model.Settle(client);
  }
}

void CreateMw(Scene& scene, Client& client) {
  const ProtectionDomainId id =
      PickFitting(scene, client, &Client::domains, [](const Domain& each) { return IsOpen(each); });
  const std::shared_ptr<Domain> domain = FindById(client.domains, id);
  Call call(scene, client, "CreateMw in " + Name("pd", domain, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(domain == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(domain != nullptr && domain->closing.begun, ErrorReason::OBJECT_CLOSING);
  scene.model.CheckQuota(client, Resource::kWindows, 1, why);
  Nic* const nic = domain != nullptr ? domain->adapter->nic : nullptr;
  if (why.none() && !scene.model.faults.Strikes(Fault::kCreateWindow, why)) {
    why.If(nic->max_keys != 0 && nic->keys >= nic->max_keys, ErrorReason::DEVICE_OUT_OF_RESOURCES);
  }
  const auto made = call.session().windows().Create(id);
  if (!call.Accepted(made.status(), why) || scene.world.witness.keys.empty()) {
    return;
  }
  auto window = std::make_shared<Window>();
  window->number = scene.model.NextNumber();
  window->id = *made;
  window->domain = domain;
  window->key = std::make_shared<Key>(*nic, domain->number, LocalToken{}, scene.world.witness.keys.front().remote);
  scene.trace.Add(" mw" + std::to_string(window->number));
  client.windows.push_back(std::move(window));
}

void GetRemoteTokenFromMw(Scene& scene, Client& client) {
  const MemoryWindowId id = PickId(scene, client, &Client::windows);
  const std::shared_ptr<Window> window = FindById(client.windows, id);
  Call call(scene, client, "GetRemoteTokenFromMw " + Name("mw", window, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(window == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(window != nullptr && !window->ever_bound, ErrorReason::WINDOW_NOT_BOUND);
  const auto token = call.session().windows().GetRemoteToken(id);
  if (call.Accepted(token.status(), why) && *token != window->key->issued) {
    scene.findings.Report("TokensAreThoseOfTheCard", "mw" + std::to_string(window->number) + " has another one");
  }
}

void CloseMw(Scene& scene, Client& client) {
  const MemoryWindowId id = PickId(scene, client, &Client::windows);
  const std::shared_ptr<Window> window = FindById(client.windows, id);
  const ReportPlan report_plan = DrawReportPlan(scene, core::RequestKind::kCloseMw, id.value, Resource::kWindows);
  Call call(scene, client, "CloseMw " + Name("mw", window, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(window == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  const auto progress =
      call.session().windows().Close(id, report_plan.choice, scene.mailbox.DoneFor(report_plan.report.callback));
  if (call.Accepted(progress, why, /*must_pend=*/false)) {
    scene.model.RemoveWindow(client, *window);
    (void)scene.model.Settle(client);
  }
}

uint64_t HasMapping(const Client& client) { return client.mappings.empty() ? 0 : 1; }
uint64_t HasWindow(const Client& client) { return client.windows.empty() ? 0 : 1; }

}  // namespace

std::vector<ClientStep> MappingSteps() {
  return {
      {BuildLam,
       [](const Client& client) -> uint64_t {
         if (!HasSealed(client)) {
           return client.adapters.empty() ? 0 : 1;
         }
         return client.mappings.empty() ? 80 : 12;
       }},
      {ReleaseLam, [](const Client& client) { return 8 * HasMapping(client); }},
      {CreateMw,
       [](const Client& client) -> uint64_t { return client.domains.empty()   ? 0
                                                     : client.windows.empty() ? 60
                                                                              : 8; }},
      {GetRemoteTokenFromMw, [](const Client& client) { return 3 * HasWindow(client); }},
      {CloseMw, [](const Client& client) { return 6 * HasWindow(client); }},
  };
}

}  // namespace rnicd::simulation
