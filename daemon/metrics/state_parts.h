#pragma once

#include "daemon/metrics/families.h"
#include "daemon/metrics/state.h"

namespace rnicd::metrics {

// What tenants hold, may hold and did.
void AddTenants(const Sources& sources, Families& families);
// Where tenants run, and the devices that their grants cover.
void AddWorkloads(const Sources& sources, Families& families);
// What the cards and their ports are up to.
void AddAdapters(const Sources& sources, Families& families);
// The daemon, its process, and all tenants together.
void AddNode(const Sources& sources, Families& families);

}  // namespace rnicd::metrics
