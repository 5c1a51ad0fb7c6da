#include "daemon/gate/method_table.h"

#include <google/protobuf/descriptor.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/core/request/operations.h"
#include "grpc/health/v1/health.pb.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/admin_service.pb.h"
#include "rnicd/v1/connection_service.pb.h"
#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/queue_service.pb.h"
#include "rnicd/v1/ring_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::gate {
namespace {

void AddMethods(const google::protobuf::FileDescriptor& file, std::set<std::string>& methods) {
  for (int s = 0; s < file.service_count(); ++s) {
    for (int m = 0; m < file.service(s)->method_count(); ++m) {
      methods.insert(absl::StrCat(file.service(s)->name(), ".", file.service(s)->method(m)->name()));
    }
  }
}

// The pool of the compiled-in files cannot be listed, so each file with services is named here once; the test
// method_table_test.cc compares the generated services with the table.
std::set<std::string> MethodsOfTheWire() {
  std::set<std::string> methods;
  AddMethods(*v1::OpenSessionRequest::descriptor()->file(), methods);
  AddMethods(*v1::ListAdaptersRequest::descriptor()->file(), methods);
  AddMethods(*v1::AllocateMemoryRequest::descriptor()->file(), methods);
  AddMethods(*v1::CreateCqRequest::descriptor()->file(), methods);
  AddMethods(*v1::CreateListenerRequest::descriptor()->file(), methods);
  AddMethods(*v1::OpenRingRequest::descriptor()->file(), methods);
  AddMethods(*v1::GetStatusRequest::descriptor()->file(), methods);
  AddMethods(*grpc::health::v1::HealthCheckRequest::descriptor()->file(), methods);
  return methods;
}

}  // namespace

absl::Status CheckMethodTable() {
  std::set<std::string> without_row = MethodsOfTheWire();
  std::set<std::string> without_method;
  for (const core::Operation& row : core::kOperations) {
    const std::string name(row.name);
    if (without_row.erase(name) == 0) {
      without_method.insert(name);
    }
  }
  if (without_row.empty() && without_method.empty()) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("methods without a row: [", absl::StrJoin(without_row, ", "),
                                          "]; rows without a method: [", absl::StrJoin(without_method, ", "), "]"));
}

}  // namespace rnicd::gate
