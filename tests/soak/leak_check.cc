#include "tests/soak/leak_check.h"

#include <fstream>
#include <sstream>
#include <thread>

#include "tests/soak/role.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/process/wait.h"

namespace rnicd::soak {
namespace {

using test::AdminStub;
using test::RawClient;

const uint64_t kThreadSlack = 2 * std::thread::hardware_concurrency() + 4;
// Mappings allowed for each thread above the baseline, and for split memory.
constexpr uint64_t kMapsPerThread = 4;
constexpr uint64_t kMapsSlack = 128;
// An hour of a release build needs 4 MiB. A sanitizer keeps freed memory for a while (quarantine_size_mb), shadows all
// of it, and remembers where it was allocated.
const uint64_t kResidentSlackKiB = test::kSlowness > 1 ? 256 * 1024 : 12 * 1024;
const double kSlopeMaxKiB = test::kSlowness > 1 ? 4096 : 1024;
// With fewer checkpoints, or less time between the first and the last, the slope is meaningless.
constexpr size_t kSlopePoints = 5;
constexpr double kSlopeMinutes = 4;

uint64_t LinesOf(const std::string& path) {
  std::ifstream file(path);
  uint64_t lines = 0;
  for (std::string line; std::getline(file, line);) {
    ++lines;
  }
  return lines;
}

void AddMismatch(std::ostringstream& text, const std::string& name, uint64_t actual, uint64_t expected) {
  if (actual > expected) {
    text << name << "=" << actual << " (expected " << expected << ") ";
  }
}

// Adds the tenants that still hold something; a tenant is listed as long as it has a connection, a session or a grant.
void AddTenantMismatches(std::ostringstream& text, const v1::ListTenantsResponse& tenants) {
  for (const v1::TenantInfo& tenant : tenants.tenants()) {
    AddMismatch(text, tenant.name() + ".sessions", tenant.sessions(), 0);
    for (const v1::ResourceUse& use : tenant.resources()) {
      AddMismatch(text, tenant.name() + "." + use.name(), use.used(), 0);
    }
  }
}

// Slope of the least-squares line through the later half.
template <typename X, typename Y>
double SlopeOfLaterHalf(const std::vector<Figures>& figures, X x_of, Y y_of) {
  double n = 0;
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  for (size_t i = figures.size() / 2; i < figures.size(); ++i) {
    const double at = x_of(figures[i]);
    const double value = y_of(figures[i]);
    n += 1;
    x += at;
    y += value;
    xx += at * at;
    xy += at * value;
  }
  const double spread = n * xx - x * x;
  return spread > 0 ? (n * xy - x * y) / spread : 0;
}

bool SaysSomething(const std::vector<Figures>& figures) {
  return figures.size() >= 2 * kSlopePoints &&
         figures.back().minute - figures[figures.size() / 2].minute >= kSlopeMinutes;
}

double Resident(const Figures& figures) { return static_cast<double>(figures.resident_kib); }

}  // namespace

std::string LeakCheck::WhatIsHeld(v1::GetStatusResponse& status) const {
  RawClient client(daemon_.admin_socket());
  const auto answer = client.Call(&AdminStub::GetStatus, {});
  const auto tenants = client.Call(&AdminStub::ListTenants, {});
  if (!answer.ok() || !tenants.ok()) {
    return "no answer to the operator: " + answer.message + tenants.message;
  }
  status = answer.response;
  std::ostringstream text;
  AddMismatch(text, "sessions", status.sessions(), 0);
  AddMismatch(text, "sessions_ending", status.sessions_ending(), 0);
  AddMismatch(text, "connections", status.connections(), 1);
  AddMismatch(text, "registered_pages", status.registered_pages(), 0);
  AddMismatch(text, "fd_tickets", status.fd_tickets(), 0);
  AddMismatch(text, "device_regions", status.device_regions(), 0);
  AddMismatch(text, "grants", status.grants(), 0);
  for (const v1::ResourceUse& use : status.resources()) {
    AddMismatch(text, use.name(), use.used(), 0);
  }
  AddTenantMismatches(text, tenants.response);
  if (!figures_.empty()) {
    AddMismatch(text, "mapped_files", daemon_.mapped_files(), figures_.front().mapped_files);
    AddMismatch(text, "open_fds", status.open_fds(), figures_.front().open_fds);
    AddMismatch(text, "threads", status.threads(), figures_.front().threads + kThreadSlack);
  }
  return text.str();
}

std::vector<std::string> LeakCheck::Check(uint64_t sessions_opened) {
  v1::GetStatusResponse status;
  std::string held;
  std::vector<std::string> wrong;
  if (!test::Eventually([&] { return !daemon_.process().running() || (held = WhatIsHeld(status)).empty(); },
                        3 * test::kTimeout)) {
    wrong.push_back("the daemon still holds: " + held);
  }
  if (figures_.empty()) {
    began_ = Clock::now();
  }
  Figures now{.minute = std::chrono::duration<double>(Clock::now() - began_).count() / 60,
              .sessions_opened = sessions_opened,
              .open_fds = status.open_fds(),
              .threads = status.threads(),
              .resident_kib = status.resident_bytes() / 1024,
              .mapped_files = daemon_.mapped_files(),
              .maps = LinesOf("/proc/" + std::to_string(daemon_.process().pid()) + "/maps")};
  figures_.push_back(now);
  const Figures& base = figures_.front();
  const auto above = [&](const char* name, uint64_t value, uint64_t bound) {
    if (value > bound) {
      wrong.push_back(std::string(name) + " is " + std::to_string(value) + ", bound " + std::to_string(bound));
    }
  };
  const uint64_t more_threads = now.threads > base.threads ? now.threads - base.threads : 0;
  above("maps", now.maps, base.maps + kMapsPerThread * more_threads + kMapsSlack);
  above("resident_kib", now.resident_kib, base.resident_kib + base.resident_kib / 2 + kResidentSlackKiB);
  if (const double slope = SlopeKiB(); slope > kSlopeMaxKiB) {
    wrong.push_back("resident memory grows by " + std::to_string(slope) + " KiB a minute, bound " +
                    std::to_string(kSlopeMaxKiB));
  }
  return wrong;
}

double LeakCheck::SlopeKiB() const {
  return SaysSomething(figures_) ? SlopeOfLaterHalf(figures_, [](const Figures& f) { return f.minute; }, Resident) : 0;
}

double LeakCheck::BytesPerSession() const {
  const auto sessions = [](const Figures& f) { return static_cast<double>(f.sessions_opened); };
  return SaysSomething(figures_) ? 1024 * SlopeOfLaterHalf(figures_, sessions, Resident) : 0;
}

std::string LeakCheck::Summary() const {
  const auto answer = RawClient(daemon_.admin_socket()).Call(&AdminStub::GetStatus, {});
  if (!answer.ok()) {
    return "the daemon does not answer: " + answer.message;
  }
  const v1::GetStatusResponse& status = answer.response;
  std::ostringstream text;
  text << "daemon " << status.connections() << " connections, " << status.sessions() << " sessions, "
       << status.tenants() << " tenants, " << status.device_regions() << " device regions, "
       << test::Used(status, "pinned_bytes") / 1024 << " KiB pinned, " << status.open_fds() << " fds, "
       << status.threads() << " threads, " << status.resident_bytes() / 1024 / 1024 << " MiB";
  return text.str();
}

}  // namespace rnicd::soak
