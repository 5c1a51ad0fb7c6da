// Adapters and protection domains.

#include <string>

#include "tests/simulation/steps/closing.h"
#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

using core::Resource;

void OpenAdapter(Scene& scene, Client& client) {
  const uint64_t index = scene.dice.Below(scene.model.nics.size());
  const bool unknown = scene.Careless();
  const bool old = scene.Careless();
  const std::string name = unknown ? "soft9" : "soft" + std::to_string(index);
  Call call(scene, client, "OpenAdapter " + name);
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(unknown, ErrorReason::ADAPTER_NOT_FOUND);
  why.If(old, ErrorReason::NDK_VERSION_UNSUPPORTED);
  scene.model.CheckQuota(client, Resource::kAdapters, 1, why);
  const auto opened = call.session().adapters().Open(name, {.major = 1, .minor = static_cast<uint16_t>(old ? 3 : 2)});
  if (call.Accepted(opened.status(), why)) {
    client.adapters.push_back(std::make_shared<Adapter>(
        Adapter{.number = scene.model.NextNumber(), .id = *opened, .nic = scene.model.nics[index].get()}));
    scene.trace.Add(" a" + std::to_string(client.adapters.back()->number));
  }
}

void QueryAdapterInfo(Scene& scene, Client& client) {
  const AdapterId id = PickId(scene, client, &Client::adapters);
  const std::shared_ptr<Adapter> adapter = FindById(client.adapters, id);
  Call call(scene, client, "QueryAdapterInfo " + Name("a", adapter, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(adapter == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(adapter != nullptr && adapter->closing.begun, ErrorReason::OBJECT_CLOSING);
  (void)call.Accepted(call.session().adapters().QueryInfo(id).status(), why);
}

void CloseAdapter(Scene& scene, Client& client) {
  const AdapterId id = PickId(scene, client, &Client::adapters);
  const std::shared_ptr<Adapter> adapter = FindById(client.adapters, id);
  Call call(scene, client, "CloseAdapter " + Name("a", adapter, id.value));
  if (!call.admitted()) {
    return;
  }
  bool must_pend = false;
  const Refusals why = CheckClose(client, adapter, must_pend);
  const Report report{.callback = scene.mailbox.Reserve()};
  const auto progress = call.session().adapters().Close(id, scene.mailbox.DoneFor(report.callback));
  if (call.Accepted(progress, why, must_pend)) {
    Close(scene, client, *adapter, must_pend, report);
  }
}

void CreatePd(Scene& scene, Client& client) {
  const AdapterId id = PickFitting(scene, client, &Client::adapters, [](const Adapter& each) { return IsOpen(each); });
  const std::shared_ptr<Adapter> adapter = FindById(client.adapters, id);
  Call call(scene, client, "CreatePd on " + Name("a", adapter, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(adapter == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  why.If(adapter != nullptr && adapter->closing.begun, ErrorReason::OBJECT_CLOSING);
  scene.model.CheckQuota(client, Resource::kProtectionDomains, 1, why);
  if (why.none()) {
    (void)scene.model.faults.Strikes(Fault::kCreateDomain, why);
  }
  const auto made = call.session().domains().Create(id);
  if (call.Accepted(made.status(), why)) {
    const auto token = call.session().domains().GetPrivilegedMemoryRegionToken(*made);
    client.domains.push_back(std::make_shared<Domain>(Domain{.number = scene.model.NextNumber(),
                                                             .id = *made,
                                                             .adapter = adapter,
                                                             .privileged = token.value_or(LocalToken{})}));
    scene.trace.Add(" pd" + std::to_string(client.domains.back()->number));
  }
}

void ClosePd(Scene& scene, Client& client) {
  const ProtectionDomainId id = PickId(scene, client, &Client::domains);
  const std::shared_ptr<Domain> domain = FindById(client.domains, id);
  Call call(scene, client, "ClosePd " + Name("pd", domain, id.value));
  if (!call.admitted()) {
    return;
  }
  bool must_pend = false;
  const Refusals why = CheckClose(client, domain, must_pend);
  const ReportPlan report_plan =
      DrawReportPlan(scene, core::RequestKind::kClosePd, id.value, Resource::kProtectionDomains);
  const auto progress =
      call.session().domains().Close(id, report_plan.choice, scene.mailbox.DoneFor(report_plan.report.callback));
  if (call.Accepted(progress, why, must_pend)) {
    Close(scene, client, *domain, must_pend, report_plan.report);
  }
}

void GetPrivilegedToken(Scene& scene, Client& client) {
  const ProtectionDomainId id = PickId(scene, client, &Client::domains);
  const std::shared_ptr<Domain> domain = FindById(client.domains, id);
  Call call(scene, client, "GetPrivilegedMemoryRegionToken " + Name("pd", domain, id.value));
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  why.If(domain == nullptr, ErrorReason::OBJECT_NOT_FOUND);
  const auto token = call.session().domains().GetPrivilegedMemoryRegionToken(id);
  if (call.Accepted(token.status(), why) && *token != domain->privileged) {
    scene.findings.Report("TokensAreThoseOfTheCard", "pd" + std::to_string(domain->number) + " has another one");
  }
}

uint64_t HasAdapter(const Client& client) { return client.adapters.empty() ? 0 : 1; }
uint64_t HasDomain(const Client& client) { return client.domains.empty() ? 0 : 1; }

}  // namespace

std::vector<ClientStep> AdapterSteps() {
  return {
      {OpenAdapter,
       [](const Client& client) -> uint64_t {
         return client.adapters.empty() ? 200 : client.adapters.size() < 2 ? 6 : 2;
       }},
      {QueryAdapterInfo, HasAdapter},
      {CloseAdapter, HasAdapter},
      {CreatePd,
       [](const Client& client) {
         return HasAdapter(client) * (client.domains.empty() ? 200 : client.domains.size() < 2 ? 6 : 2);
       }},
      {ClosePd, HasDomain},
      {GetPrivilegedToken, HasDomain},
  };
}

}  // namespace rnicd::simulation
