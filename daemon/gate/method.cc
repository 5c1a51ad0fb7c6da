#include "daemon/gate/method.h"

#include "daemon/core/request/operations.h"
#include "daemon/gate/method_table.h"

#include <google/protobuf/descriptor.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace rnicd::gate {
namespace {

const Method& UnknownMethod() {
  static const auto* const method = new Method{.row = &core::kUnknownOperation};
  return *method;
}

// The wire's method of a row, in the package of its request. Null when there is none.
const google::protobuf::MethodDescriptor* DescriptorOf(const Method& method) {
  const std::string_view name = method.row->name;
  const size_t dot = name.find('.');
  const auto* const file = method.request->GetDescriptor()->file();
  const auto* const service = file->pool()->FindServiceByName(file->package() + "." + std::string(name.substr(0, dot)));
  return service == nullptr ? nullptr : service->FindMethodByName(std::string(name.substr(dot + 1)));
}

std::string PathOf(const google::protobuf::MethodDescriptor& descriptor) {
  return absl::StrCat("/", descriptor.service()->full_name(), "/", descriptor.name());
}

bool HasMessagesOf(const Method& method, const google::protobuf::MethodDescriptor& descriptor) {
  return method.request->GetDescriptor() == descriptor.input_type() && !descriptor.client_streaming() &&
         (method.shape == Call::Shape::kStream) == descriptor.server_streaming() &&
         (method.response == nullptr || method.response->GetDescriptor() == descriptor.output_type());
}

}  // namespace

MethodIndex::MethodIndex(std::vector<Method> methods) : methods_(std::move(methods)) {
  for (const Method& method : methods_) {
    if (const auto* const descriptor = DescriptorOf(method); descriptor != nullptr) {
      paths_.push_back(std::make_unique<const std::string>(PathOf(*descriptor)));
      by_path_.emplace(*paths_.back(), &method);
    }
  }
}

const Method& MethodIndex::Find(std::string_view path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? UnknownMethod() : *found->second;
}

absl::Status MethodIndex::Check() const {
  RNICD_RETURN_IF_ERROR(CheckMethodTable());
  std::set<std::string> without_handler;
  for (const core::Operation& row : core::kOperations) {
    without_handler.emplace(row.name);
  }
  std::vector<std::string> wrong;
  for (const Method& method : methods_) {
    const auto* const descriptor = DescriptorOf(method);
    const bool is_first = without_handler.erase(std::string(method.row->name)) == 1;
    const bool lacks_session = method.uses_session && method.row->needs == core::Needs::kNoSession;
    if (!is_first || descriptor == nullptr || !HasMessagesOf(method, *descriptor) || lacks_session) {
      wrong.emplace_back(method.row->name);
    }
  }
  if (without_handler.empty() && wrong.empty()) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "rows without a handler: [", absl::StrJoin(without_handler, ", "),
      "]; handlers twice, not with the wire's messages, or without their session: [", absl::StrJoin(wrong, ", "), "]"));
}

}  // namespace rnicd::gate
