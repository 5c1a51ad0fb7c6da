#include "daemon/gate/method_table.h"
#include "daemon/core/request/operations.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "grpc/health/v1/health.pb.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/admin_service.pb.h"
#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/queue_service.pb.h"
#include "rnicd/v1/ring_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::gate {
namespace {

// Every method of rnicd's services and of gRPC's health protocol that is linked into this program, found without naming
// a file.
std::set<std::string> MethodsOfTheProgram() {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  std::vector<std::string> files;
  EXPECT_TRUE(google::protobuf::DescriptorPool::internal_generated_database()->FindAllFileNames(&files));
  std::set<std::string> methods;
  for (const std::string& name : files) {
    const auto* file = pool->FindFileByName(name);
    if (file == nullptr || (file->package() != "rnicd.v1" && file->package() != "grpc.health.v1")) {
      continue;
    }
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.insert(file->service(s)->name() + "." + file->service(s)->method(m)->name());
      }
    }
  }
  return methods;
}

TEST(MethodTable, IsTotal) {
  EXPECT_TRUE(CheckMethodTable().ok()) << CheckMethodTable();
  std::set<std::string> rows;
  for (const core::Operation& row : core::kOperations) {
    EXPECT_TRUE(rows.insert(std::string(row.name)).second) << row.name << " has two rows";
  }
  EXPECT_EQ(rows, MethodsOfTheProgram());
}

// The methods of the operators' services by role; workloads may call all other methods, and the other roles may list
// adapters.
TEST(MethodTable, EveryRoleReachesWhatIsMeantForIt) {
  const std::set<std::string_view> operators_only = {"AdminService.EvictSession", "AdminService.Drain",
                                                     "AdminService.SetLogLevel", "AdminService.ReloadPolicy"};
  const std::set<std::string_view> plugins_too = {"AdminService.GetStatus",
                                                  "AdminService.ListSessions",
                                                  "AdminService.ListRegions",
                                                  "AdminService.ListListeners",
                                                  "AdminService.ListConnections",
                                                  "AdminService.ListTenants",
                                                  "AdminService.DumpState",
                                                  "AdminService.InspectSession",
                                                  "AdminService.CreateGrant",
                                                  "AdminService.RevokeGrant",
                                                  "AdminService.BindGrant",
                                                  "AdminService.ListGrants",
                                                  "AdminService.SetPods",
                                                  "Health.Check",
                                                  "Health.Watch"};
  for (const core::Operation& row : core::kOperations) {
    const bool admin = row.name.starts_with("AdminService.") || row.name.starts_with("Health.");
    EXPECT_EQ(operators_only.contains(row.name) || plugins_too.contains(row.name), admin) << row.name;
    const bool for_all = row.name == "AdapterService.ListAdapters";
    EXPECT_EQ(row.Allows(core::Role::kWorkload), !admin) << row.name;
    EXPECT_EQ(row.Allows(core::Role::kOperator), admin || for_all) << row.name;
    EXPECT_EQ(row.Allows(core::Role::kDevicePlugin), plugins_too.contains(row.name) || for_all) << row.name;
  }
}

TEST(MethodTable, OnlyWorkloadsHaveSessionsAndNeedThemForAllButAFewCalls) {
  const std::set<std::string_view> before = {"SessionService.OpenSession", "SessionService.JoinSession",
                                             "AdapterService.ListAdapters"};
  for (const core::Operation& row : core::kOperations) {
    const bool admin = row.name.starts_with("AdminService.") || row.name.starts_with("Health.");
    EXPECT_EQ(row.needs == core::Needs::kNoSession, before.contains(row.name) || admin) << row.name;
  }
}

// Quiet methods change nothing and disclose little, or are the data path. A new row must be added here as well.
TEST(MethodTable, EverythingThatChangesHandsIsADecision) {
  const std::set<std::string_view> quiet = {"SessionService.GetSession",
                                            "SessionService.WatchEvents",
                                            "AdapterService.ListAdapters",
                                            "AdapterService.QueryAdapterInfo",
                                            "QueueService.ArmCq",
                                            "QueueService.GetCqResults",
                                            "QueueService.GetCqResultsEx",
                                            "QueueService.QueryQp",
                                            "QueueService.Flush",
                                            "QueueService.Post",
                                            "ConnectionService.GetListenerLocalAddress",
                                            "ConnectionService.GetConnectorAddresses",
                                            "AdminService.GetStatus",
                                            "AdminService.ListSessions",
                                            "AdminService.ListRegions",
                                            "AdminService.ListListeners",
                                            "AdminService.ListConnections",
                                            "AdminService.ListTenants",
                                            "AdminService.InspectSession",
                                            "AdminService.ListGrants",
                                            "Health.Check",
                                            "Health.Watch"};
  for (const core::Operation& row : core::kOperations) {
    EXPECT_EQ(row.audit == core::Audit::kQuiet, quiet.contains(row.name)) << row.name;
  }
}

TEST(MethodTable, OnlyClosingASessionIsFree) {
  for (const core::Operation& row : core::kOperations) {
    EXPECT_EQ(row.pace == core::Pace::kFreeInSession, row.name == "SessionService.CloseSession") << row.name;
  }
}

TEST(MethodTable, ARowIsFoundByItsName) {
  static_assert(core::Row("MemoryService.CreateMr").needs == core::Needs::kSession);
  EXPECT_EQ(core::Row("MemoryService.CreateMr").name, "MemoryService.CreateMr");
}

}  // namespace
}  // namespace rnicd::gate
