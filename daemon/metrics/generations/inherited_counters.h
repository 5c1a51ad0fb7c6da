#pragma once

#include <prometheus/metric_family.h>

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "daemon/metrics/generations/counter_samples.h"

namespace rnicd::metrics {

class Metrics;
struct Sources;

// What other generations have counted, added to this one's counters, because a reader of the page takes a counter that
// falls for a restart at 0 and counts all that is left once more. Nothing here ever falls: when the older generation
// has ended, its last text counts.
// Threads: safe.
class InheritedCounters {
 public:
  static constexpr size_t kTextBytesMost = size_t{8} << 20;

  // At most `most_tenants` of the tenants that the texts name keep series of their own; the others become "other".
  // `on_refused`: called with the cause when a text, or a part of it, is the first one refused since the last good one.
  InheritedCounters(size_t most_tenants, std::function<void(const absl::Status&)> on_refused);

  // The newest CountersText of the older generation.
  void Set(std::string_view text);
  // The last CountersText of a newer generation that has died, without what it inherited: this one's page goes on.
  void Keep(std::string_view text);
  // Adds them to the counters and histograms of a page; series that it does not have are new ones.
  void AddTo(std::vector<prometheus::MetricFamily>& page) const;

 private:
  using Join = void (*)(CounterSamples newer, CounterSamples& known);
  void Read(std::string_view text, Join join, CountersByName InheritedCounters::* known);
  absl::Status Take(std::string_view text, Join join, CountersByName& known) RNICD_REQUIRES(mutex_);
  void BoundTenants(CounterSamples& family) RNICD_REQUIRES(mutex_);

  const size_t most_tenants_;
  const std::function<void(const absl::Status&)> on_refused_;
  mutable Mutex mutex_;
  CountersByName older_ RNICD_GUARDED_BY(mutex_);
  CountersByName newer_ RNICD_GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> tenants_ RNICD_GUARDED_BY(mutex_);
  bool refused_ RNICD_GUARDED_BY(mutex_) = false;
};

// What this generation counted and inherited, for InheritedCounters of the newer one. Empty histograms are left out.
// Threads: safe, as `sources` are.
std::string CountersText(const Metrics& metrics, const Sources& sources);

}  // namespace rnicd::metrics
