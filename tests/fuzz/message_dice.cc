#include "tests/fuzz/message_dice.h"

#include <map>
#include <utility>
#include <vector>

#include "base/units.h"
#include "tests/fuzz/call_script.h"
#include "tests/fuzz/wire_pool.h"

namespace rnicd::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kDepthMax = 5;
constexpr uint32_t kElementsMax = 4;
constexpr uint64_t kAddress = 0x7f0000000000;

// Values of a field of this name in a valid call; null for an unknown name.
const std::vector<uint64_t>* SoundNumbers(const std::string& name) {
  static const std::map<std::string, std::vector<uint64_t>> numbers = {
      {"major", {1}},
      {"minor", {0, 1, 2}},
      {"size", {kNdkPageBytes, 4 * kNdkPageBytes, 16 * kNdkPageBytes}},
      {"byte_offset", {0, kNdkPageBytes, 2 * kNdkPageBytes}},
      {"byte_count", {kNdkPageBytes, 2 * kNdkPageBytes, 4 * kNdkPageBytes}},
      {"length", {8, kNdkPageBytes, 2 * kNdkPageBytes, 4 * kNdkPageBytes}},
      {"virtual_address", {kAddress, kAddress + kNdkPageBytes}},
      {"base_virtual_address", {kAddress}},
      {"remote_address", {kAddress, kAddress + kNdkPageBytes}},
      {"fbo", {0}},
      {"adapter_page_count", {1, 4, 16}},
      {"cq_depth", {1, 4, 64}},
      {"receive_queue_depth", {1, 8}},
      {"initiator_queue_depth", {1, 8}},
      {"max_receive_request_sge", {1, 4}},
      {"max_initiator_request_sge", {1, 4}},
      {"inline_data_size", {0, 64}},
      {"max_results", {1, 100}},
      {"flags", {0, 1, 2, 3, 7, 15, 56, 8}},
      {"lifetime_ms", {0, 1000}},
      {"sessions", {0, 1, 4}},
      {"requests_per_second", {0, 1000}},
      {"page_size", {0, 1}},
  };
  const auto found = numbers.find(name);
  return found == numbers.end() ? nullptr : &found->second;
}

std::vector<const FieldDescriptor*> FieldsOf(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  for (int index = 0; index < message.GetDescriptor()->field_count(); ++index) {
    fields.push_back(message.GetDescriptor()->field(index));
  }
  return fields;
}

// Collects the message and all messages inside it.
void Collect(Message& message, std::vector<Message*>& all) {
  all.push_back(&message);
  std::vector<const FieldDescriptor*> fields;
  const Reflection* const reflection = message.GetReflection();
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    }
    if (!field->is_repeated()) {
      Collect(*reflection->MutableMessage(&message, field), all);
      continue;
    }
    for (int index = 0; index < reflection->FieldSize(message, field); ++index) {
      Collect(*reflection->MutableRepeatedMessage(&message, field, index), all);
    }
  }
}

}  // namespace

uint64_t MessageDice::Number(const FieldDescriptor* field) {
  if (!PoolOf(field).empty() && Chance(90)) {
    return kFirstReference + (Chance(60) ? 0 : Below(8));
  }
  const std::vector<uint64_t>* const sound = SoundNumbers(field->name());
  if (sound != nullptr && Chance(75)) {
    return (*sound)[Below(static_cast<uint32_t>(sound->size()))];
  }
  const uint64_t any = uint64_t{random_()} << 33 ^ uint64_t { random_() } << 11 ^ random_();
  switch (Below(6)) {
    case 0:
      return Below(16);
    case 1:
      return uint64_t{Below(64)} * kNdkPageBytes;
    case 2:
      return UINT64_MAX - Below(3);
    case 3:
      return UINT32_MAX - Below(3);
    case 4:
      return uint64_t{1} << Below(64);
    default:
      return any;
  }
}

std::string MessageDice::Text(const FieldDescriptor* field) {
  if (!PoolOf(field).empty() && Chance(85)) {
    return "&" + std::to_string(Below(3));
  }
  static const std::map<std::string, std::vector<std::string>> sound = {
      {"adapter_name", {"soft0", "soft1"}},
      {"level", {"debug", "info", "warning", "error"}},
      {"pod_uid", {"", "01234567-89ab-cdef-0123-456789abcdef"}},
      {"uid", {"01234567-89ab-cdef-0123-456789abcdef", "0123456789abcdef0123456789abcdef"}},
      {"name", {"a", "pod-7", "x/y"}},
      {"inline_data", {"", "12345678"}},
  };
  const auto found = sound.find(field->name());
  if (found != sound.end() && Chance(75)) {
    return found->second[Below(static_cast<uint32_t>(found->second.size()))];
  }
  std::string text(Below(Chance(90) ? 9 : 400), 'x');
  for (char& c : text) {
    c = static_cast<char>(Chance(80) ? 'a' + Below(26) : Below(256));
  }
  // gRPC does not transmit strings that are not UTF-8; bytes may be anything.
  if (field->type() == FieldDescriptor::TYPE_STRING && Chance(95)) {
    for (char& c : text) {
      c = static_cast<char>(c & 0x7f);
    }
  }
  return text;
}

int MessageDice::Enumerator(const FieldDescriptor* field) {
  const auto* const type = field->enum_type();
  return Chance(90) ? type->value(static_cast<int>(Below(static_cast<uint32_t>(type->value_count()))))->number()
                    : static_cast<int>(Below(100)) - 2;
}

void MessageDice::AddElement(Message& message, const FieldDescriptor* field, int depth) {
  const Reflection* const reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Fill(*reflection->AddMessage(&message, field), depth + 1);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->AddUInt64(&message, field, Number(field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->AddUInt32(&message, field, static_cast<uint32_t>(Number(field)));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->AddString(&message, field, Text(field));
    default:
      return;
  }
}

void MessageDice::SetField(Message& message, const FieldDescriptor* field, int depth) {
  const Reflection* const reflection = message.GetReflection();
  if (field->is_repeated()) {
    for (uint32_t count = Below(kElementsMax); count > 0; --count) {
      AddElement(message, field, depth);
    }
    return;
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Fill(*reflection->MutableMessage(&message, field), depth + 1);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->SetUInt64(&message, field, Number(field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->SetUInt32(&message, field, static_cast<uint32_t>(Number(field)));
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->SetInt32(&message, field, static_cast<int32_t>(Number(field)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->SetBool(&message, field, Chance(50));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->SetEnumValue(&message, field, Enumerator(field));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->SetString(&message, field, Text(field));
    default:
      return;
  }
}

void MessageDice::Fill(Message& message, int depth) {
  if (depth > kDepthMax) {
    return;
  }
  for (const FieldDescriptor* const field : FieldsOf(message)) {
    // In a oneof the last field that is set wins.
    if (Chance(field->real_containing_oneof() != nullptr ? 30 : 85)) {
      SetField(message, field, depth);
    }
  }
}

void MessageDice::Change(Message& message) {
  std::vector<Message*> all;
  Collect(message, all);
  Message& chosen = *all[Below(static_cast<uint32_t>(all.size()))];
  const std::vector<const FieldDescriptor*> fields = FieldsOf(chosen);
  if (fields.empty()) {
    return;
  }
  const FieldDescriptor* const field = fields[Below(static_cast<uint32_t>(fields.size()))];
  const Reflection* const reflection = chosen.GetReflection();
  if (field->is_repeated() && Chance(80)) {
    const int size = reflection->FieldSize(chosen, field);
    if (size > 0 && Chance(40)) {
      reflection->SwapElements(&chosen, field, static_cast<int>(Below(static_cast<uint32_t>(size))), size - 1);
      reflection->RemoveLast(&chosen, field);
    } else {
      AddElement(chosen, field, 1);
    }
    return;
  }
  reflection->ClearField(&chosen, field);
  if (Chance(90)) {
    SetField(chosen, field, 1);
  }
}

}  // namespace rnicd::fuzz
