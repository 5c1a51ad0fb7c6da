#include "daemon/gate/named_objects.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "rnicd/v1/connection_service.pb.h"

namespace rnicd::gate {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Name and pod of a grant, name of an adapter, log level, name and address of a listener.
constexpr std::string_view kHarmlessTexts[] = {"name", "pod_uid", "adapter_name", "level", "full_name", "peer_name"};
constexpr size_t kTextBytesMax = 64;

// The value of an integer field; empty if not worth logging.
std::string NumberOf(const Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::to_string(reflection.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::to_string(reflection.GetUInt32(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(reflection.GetInt32(message, &field));
    default:
      return "0";
  }
}

std::string HarmlessText(const Message& message, const FieldDescriptor& field) {
  std::string text = message.GetReflection()->GetString(message, &field).substr(0, kTextBytesMax);
  const auto harmless = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("-_./:").find(static_cast<char>(c)) != std::string_view::npos;
  };
  std::replace_if(text.begin(), text.end(), [&](char c) { return !harmless(static_cast<unsigned char>(c)); }, '?');
  return text;
}

bool IsAddress(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field.message_type() == v1::NetworkAddress::descriptor();
}

std::string AddressText(const Message& message) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  return HarmlessText(message, *type.FindFieldByNumber(v1::NetworkAddress::kAddressFieldNumber)) + ":" +
         NumberOf(message, *type.FindFieldByNumber(v1::NetworkAddress::kPortFieldNumber));
}

// "mr_id=17 ", or empty.
std::string Named(const Message& message, const FieldDescriptor& field) {
  const std::string& name = field.name();
  if (field.is_repeated()) {
    return "";
  }
  std::string value;
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const bool known =
        std::find(std::begin(kHarmlessTexts), std::end(kHarmlessTexts), name) != std::end(kHarmlessTexts);
    value = known && field.type() == FieldDescriptor::TYPE_STRING ? HarmlessText(message, field) : "";
  } else if (name.ends_with("_id")) {
    value = NumberOf(message, field);
  } else if (IsAddress(field) && message.GetReflection()->HasField(message, &field)) {
    value = AddressText(message.GetReflection()->GetMessage(message, &field));
  }
  return value.empty() || value == "0" ? "" : name + "=" + value + " ";
}

void AddNamed(const Message* message, std::string& names) {
  if (message == nullptr) {
    return;
  }
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  for (int index = 0; index < type.field_count(); ++index) {
    const std::string named = Named(*message, *type.field(index));
    // A field that the response repeats is named once.
    if (!named.empty() && (" " + names).find(" " + named) == std::string::npos) {
      names += named;
    }
  }
}

}  // namespace

std::string NamedObjects(const Message* request, const Message* response) {
  std::string names;
  AddNamed(request, names);
  AddNamed(response, names);
  if (!names.empty()) {
    names.pop_back();
  }
  return names;
}

}  // namespace rnicd::gate
