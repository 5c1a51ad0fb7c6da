#include "client/kubernetes/upkeep.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/transport_failure.h"
#include "client/kubernetes/node/pod_list.h"
#include "client/kubernetes/resources/inventory.h"

namespace rnicd::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

constexpr milliseconds kPollInterval(1'000);
// Usual time from Allocate until the kubelet names the holder.
constexpr milliseconds kHolderDelay(2'000);

}  // namespace

Upkeep::Upkeep(const Config& config, const Parts& parts, const log::Logger& logger,
               const std::function<void(const absl::Status&)>& on_failure)
    : config_(config), parts_(parts), on_failure_(on_failure), troubles_(logger), observer_(config, troubles_) {}

Upkeep::~Upkeep() { Stop(); }

void Upkeep::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Upkeep::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  parts_.watch.Close();
  if (thread_.joinable()) {
    thread_.join();
  }
}

bool Upkeep::WaitUntilStop(milliseconds longest) {
  const auto end = steady_clock::now() + longest;
  MutexLock lock(mutex_);
  while (!stopping_ && wake_.WaitUntil(mutex_, end)) {
  }
  return stopping_;
}

// The link is started once the devices are known: a kubelet that receives an empty list would forget the devices of the
// previous plugin process.
void Upkeep::Run() {
  bool linked = false;
  auto next_reconciliation = steady_clock::now();
  do {
    PollDaemon();
    if (!linked && !parts_.watch.plan_error().ok()) {
      on_failure_(parts_.watch.plan_error());
      return;
    }
    if (!linked && parts_.watch.known()) {
      linked = true;
      troubles_.Note("the kubelet's folder", parts_.link.Start());
    }
    const auto now = steady_clock::now();
    const ContainerAllocator::Aftermath aftermath = parts_.allocator.TakeAftermath();
    renewal_is_due_ = renewal_is_due_ || aftermath.renew;
    if (aftermath.reconcile) {
      next_reconciliation = std::min(next_reconciliation, now + kHolderDelay);
    }
    if (linked && (now >= next_reconciliation || report_is_due_)) {
      Reconcile();
      next_reconciliation = steady_clock::now() + config_.reconcile_interval;
    }
  } while (!WaitUntilStop(std::min(kPollInterval, config_.reconcile_interval)));
}

void Upkeep::PollDaemon() {
  const DaemonWatch::PollResult seen = parts_.watch.Poll();
  renewal_is_due_ = renewal_is_due_ || seen.is_new;
  report_is_due_ = report_is_due_ || seen.is_new;
  if (seen.reachable && renewal_is_due_) {
    const absl::Status renewed = parts_.keeper.Renew(system_clock::now());
    troubles_.Note("renewing grants", renewed);
    renewal_is_due_ = !renewed.ok();
  }
}

void Upkeep::Reconcile() {
  const NodeObserver::Seen seen = observer_.Observe(parts_.keeper.ResourcesInUse());
  const NodeView view(seen.observation);
  if (seen.complete) {
    const absl::Status revoked = parts_.keeper.Reconcile(view, system_clock::now());
    troubles_.Note("revoking grants", revoked);
    // A daemon that hangs must not also delay the next look at its health.
    if (IsTransportFailure(revoked)) {
      return;
    }
  }
  troubles_.Note("comparing the pool with what pods hold", CheckPool());
  ReportPods(view.Holders(parts_.keeper.records()), seen.listed);
}

// While the API server does not respond the last known pods are reported.
void Upkeep::ReportPods(std::span<const Holder> holders, bool listed) {
  // A plugin that is not registered, or cannot ask the kubelet, sends nothing: the alert KubeletRegistrationLost
  // detects that silence. The first report to a new daemon is an exception, because policy rules for namespaces need
  // it.
  const bool regular = listed && parts_.link.registered();
  const bool first = report_is_due_ && (listed || !observer_.cluster_pods().empty() || !holders.empty());
  if (!regular && !first) {
    return;
  }
  const absl::Status reported = parts_.daemon.SetPods(PodList(observer_.cluster_pods(), holders));
  troubles_.Note("telling the daemon of pods", reported);
  report_is_due_ = IsTransportFailure(reported) && report_is_due_;
}

absl::Status Upkeep::CheckPool() const {
  std::map<std::string, std::vector<std::string>> held;
  for (const GrantRecord& grant : parts_.keeper.records()) {
    if (!grant.suspended) {
      std::vector<std::string>& ids = held[grant.resource];
      ids.insert(ids.end(), grant.device_ids.begin(), grant.device_ids.end());
    }
  }
  std::string text;
  for (const auto& [resource, ids] : held) {
    const auto board = parts_.watch.boards().find(resource);
    const size_t offered = board == parts_.watch.boards().end() ? 0 : CountOffered(board->second->Get().devices, ids);
    if (offered < ids.size()) {
      absl::StrAppend(&text, text.empty() ? "" : "; ", "pods hold ", ids.size() - offered, " units of ", resource,
                      " that this node no longer offers");
    }
  }
  return text.empty() ? absl::OkStatus() : absl::FailedPreconditionError(text);
}

}  // namespace rnicd::kubernetes
