#pragma once

#include "daemon/metrics/families.h"
#include "daemon/metrics/state.h"

namespace rnicd::metrics {

// Holdings, limits and activity of tenants.
void AddTenants(const Sources& sources, Families& families);
// Activity alone.
void AddTallies(const Sources& sources, Families& families);
// Workloads of tenants, and the devices that their grants cover.
void AddWorkloads(const Sources& sources, Families& families);
// State of the cards and their ports.
void AddAdapters(const Sources& sources, Families& families);
// Probes and fast registrations alone.
void AddProbes(const Sources& sources, Families& families);
// The daemon, its process, and all tenants together.
void AddNode(const Sources& sources, Families& families);
// The counters among them.
void AddNodeCounters(const Sources& sources, Families& families);
// This daemon, and those that it has taken over from.
void AddGenerations(const Sources& sources, Families& families);

}  // namespace rnicd::metrics
