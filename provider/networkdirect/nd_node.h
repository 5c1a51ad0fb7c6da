#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/secrets/random.h"
#include "provider/engine/engine_fabric.h"
#include "provider/networkdirect/completion_loop.h"
#include "provider/networkdirect/nd_device.h"
#include "provider/networkdirect/nd_library.h"
#include "provider/networkdirect/nd_meeting.h"
#include "provider/networkdirect/nd_options.h"

namespace rnicd::provider {

// State shared by all cards of a provider.
// Lifetime: shared by everything made in the provider; Stop ends its threads.
struct NdNode {
  NdNode(std::vector<NdSource> node_sources, NetworkDirectOptions node_options, RandomSource& random_source)
      : sources(std::move(node_sources)), options(std::move(node_options)), random(random_source) {}
  void Stop() {
    events.Stop();
    registrations.Stop();
  }

  // First, so that the libraries are unloaded last.
  const std::vector<NdSource> sources;
  const NetworkDirectOptions options;
  RandomSource& random;
  EngineFabric fabric;
  NdMeeting meeting;
  // Completions and connections. May wait for `registrations`.
  CompletionLoop events{[this] { meeting.Tick(); }};
  // Registrations only, so that the other loop's thread, too, may wait for one.
  CompletionLoop registrations;
};

}  // namespace rnicd::provider
