#include "daemon/gate/method_table.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "rnicd/v1/adapter_service.grpc.pb.h"
#include "rnicd/v1/admin_service.grpc.pb.h"
#include "rnicd/v1/memory_service.grpc.pb.h"
#include "rnicd/v1/session_service.grpc.pb.h"

namespace rnicd::gate {
namespace {

// Every method of every service of rnicd.v1 that is linked into this program, found without naming a file.
std::set<std::string> MethodsOfTheProgram() {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  std::vector<std::string> files;
  EXPECT_TRUE(google::protobuf::DescriptorPool::internal_generated_database()->FindAllFileNames(&files));
  std::set<std::string> methods;
  for (const std::string& name : files) {
    const auto* file = pool->FindFileByName(name);
    if (file == nullptr || file->package() != "rnicd.v1") {
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
  for (const MethodRow& row : kMethodTable) {
    EXPECT_TRUE(rows.insert(std::string(row.name)).second) << row.name << " has two rows";
  }
  EXPECT_EQ(rows, MethodsOfTheProgram());
}

TEST(MethodTable, OnlyOperatorsReachTheAdminServiceAndNothingElseThatActs) {
  for (const MethodRow& row : kMethodTable) {
    const bool admin = row.name.starts_with("AdminService.");
    EXPECT_EQ(row.Allows(core::Role::kWorkload), !admin) << row.name;
    EXPECT_EQ(row.Allows(core::Role::kOperator), admin || row.name == "AdapterService.ListAdapters") << row.name;
  }
}

TEST(MethodTable, OnlyCallsThatComeBeforeASessionNeedNone) {
  const std::set<std::string_view> before = {"SessionService.OpenSession",  "SessionService.JoinSession",
                                             "AdapterService.ListAdapters", "AdminService.GetStatus",
                                             "AdminService.ListSessions",   "AdminService.ListRegions"};
  for (const MethodRow& row : kMethodTable) {
    EXPECT_EQ(row.needs == Needs::kNoSession, before.contains(row.name)) << row.name;
  }
}

TEST(MethodTable, ARowIsFoundByItsName) {
  static_assert(Row("MemoryService.CreateMr").needs == Needs::kSession);
  EXPECT_EQ(Row("MemoryService.CreateMr").name, "MemoryService.CreateMr");
}

}  // namespace
}  // namespace rnicd::gate
