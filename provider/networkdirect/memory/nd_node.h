#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/secrets/random.h"
#include "provider/engine/engine_fabric.h"
#include "provider/networkdirect/card/completion_loop.h"
#include "provider/networkdirect/card/nd_device.h"
#include "provider/networkdirect/card/nd_library.h"
#include "provider/networkdirect/card/nd_options.h"
#include "provider/networkdirect/memory/nd_rendezvous.h"

namespace rnicd::provider {

// State shared by all cards of a provider.
// Lifetime: shared by everything made in the provider; Stop ends its threads.
struct NdNode {
  // What each queue pair does every 100 ms.
  using Tick = void (*)(NdEndpoint&);

  NdNode(std::vector<NdSource> node_sources, NetworkDirectOptions node_options, RandomSource& random_source,
         Tick node_tick)
      : sources(std::move(node_sources)), options(std::move(node_options)), random(random_source), tick(node_tick) {}
  void Stop() {
    events.Stop();
    registrations.Stop();
  }

  // First, so that the libraries are unloaded last.
  const std::vector<NdSource> sources;
  const NetworkDirectOptions options;
  RandomSource& random;
  const Tick tick;
  EngineFabric fabric;
  NdRendezvous rendezvous;
  // Completions and connections. May wait for `registrations`.
  CompletionLoop events{[this] { TickAll(); }};
  // Registrations only, so that the other loop's thread, too, may wait for one.
  CompletionLoop registrations;

 private:
  void TickAll() const {
    for (const std::shared_ptr<NdEndpoint>& endpoint : rendezvous.Endpoints()) {
      tick(*endpoint);
    }
  }
};

}  // namespace rnicd::provider
