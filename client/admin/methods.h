#pragma once

#include "client/cpp/channel/method.h"
#include "rnicd/v1/admin_service.pb.h"

// The methods for operators.
namespace rnicd::inline client {

RNICD_METHOD(AdminService, GetStatus);
RNICD_METHOD(AdminService, ListSessions);
RNICD_METHOD(AdminService, ListRegions);
RNICD_METHOD(AdminService, ListListeners);
RNICD_METHOD(AdminService, ListConnections);
RNICD_METHOD(AdminService, ListTenants);
RNICD_METHOD(AdminService, InspectSession);
RNICD_METHOD(AdminService, DumpState);
RNICD_METHOD(AdminService, EvictSession);
RNICD_METHOD(AdminService, Drain);
RNICD_METHOD(AdminService, SetLogLevel);
RNICD_METHOD(AdminService, ReloadPolicy);
RNICD_METHOD(AdminService, CreateGrant);
RNICD_METHOD(AdminService, RevokeGrant);
RNICD_METHOD(AdminService, BindGrant);
RNICD_METHOD(AdminService, ListGrants);
RNICD_METHOD(AdminService, SetPods);

}  // namespace rnicd::inline client
