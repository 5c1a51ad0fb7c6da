#include "tests/fuzz/wire_pool.h"

#include <charconv>

#include "tests/fuzz/call_script.h"

namespace rnicd::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Values kept of each kind; a list of pages is long.
constexpr size_t kValuesMax = 64;

bool IsText(const FieldDescriptor* field) { return field->cpp_type() == FieldDescriptor::CPPTYPE_STRING; }

// The index after "&"; kReferences if the text is not a reference.
size_t ReferenceOf(const std::string& text) {
  size_t index = kReferences;
  if (text.starts_with('&')) {
    std::from_chars(text.data() + 1, text.data() + text.size(), index);
  }
  return index;
}

}  // namespace

std::string PoolOf(const FieldDescriptor* field) {
  static const std::map<std::string, std::string> pools = {
      {"receive_cq_id", "cq_id"},     {"initiator_cq_id", "cq_id"},        {"token", "local_token"},
      {"local_token", "local_token"}, {"privileged_token", "local_token"}, {"remote_token", "remote_token"},
      {"adapter_page_array", "page"}, {"peer_address", "address"},         {"grant", "secret"},
      {"secret", "secret"},           {"page_token", "page_token"},        {"next_page_token", "page_token"},
  };
  // The address of an SGE is a number, that of a queue pair is text.
  if (field->name() == "address") {
    return IsText(field) ? "address" : "page";
  }
  if (const auto found = pools.find(field->name()); found != pools.end()) {
    return found->second;
  }
  return field->name().ends_with("_id") ? field->name() : "";
}

void WirePool::LearnNumber(const std::string& pool, uint64_t value) {
  std::vector<uint64_t>& values = numbers_[pool];
  if (value != 0 && values.size() < kValuesMax) {
    values.push_back(value);
  }
}

void WirePool::LearnField(const Message& message, const FieldDescriptor* field) {
  const Reflection* const reflection = message.GetReflection();
  const std::string pool = PoolOf(field);
  const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
  for (int index = 0; index < count; ++index) {
    const bool repeated = field->is_repeated();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        LearnMessage(repeated ? reflection->GetRepeatedMessage(message, field, index)
                              : reflection->GetMessage(message, field));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        LearnNumber(pool, repeated ? reflection->GetRepeatedUInt64(message, field, index)
                                   : reflection->GetUInt64(message, field));
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        LearnNumber(pool, repeated ? reflection->GetRepeatedUInt32(message, field, index)
                                   : reflection->GetUInt32(message, field));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        if (std::string value = repeated ? "" : reflection->GetString(message, field); !value.empty()) {
          texts_[pool].push_back(std::move(value));
        }
        break;
      default:
        break;
    }
  }
}

void WirePool::LearnMessage(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE || !PoolOf(field).empty()) {
      LearnField(message, field);
    }
  }
}

void WirePool::Learn(const Message& answer) {
  MutexLock lock(mutex_);
  LearnMessage(answer);
}

uint64_t WirePool::Number(const FieldDescriptor* field, uint64_t value) const {
  if (value < kFirstReference || value >= kFirstReference + kReferences) {
    return value;
  }
  const auto found = numbers_.find(PoolOf(field));
  return found == numbers_.end() || found->second.empty()
             ? 0
             : found->second[(value - kFirstReference) % found->second.size()];
}

std::string WirePool::Text(const FieldDescriptor* field, const std::string& value) const {
  const size_t index = ReferenceOf(value);
  if (index >= kReferences) {
    return value;
  }
  const auto found = texts_.find(PoolOf(field));
  return found == texts_.end() || found->second.empty() ? "" : found->second[index % found->second.size()];
}

void WirePool::ResolveField(Message& message, const FieldDescriptor* field) const {
  const Reflection* const reflection = message.GetReflection();
  const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
  for (int index = 0; index < count; ++index) {
    const bool repeated = field->is_repeated();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        ResolveMessage(repeated ? *reflection->MutableRepeatedMessage(&message, field, index)
                                : *reflection->MutableMessage(&message, field));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        if (repeated) {
          reflection->SetRepeatedUInt64(&message, field, index,
                                        Number(field, reflection->GetRepeatedUInt64(message, field, index)));
        } else {
          reflection->SetUInt64(&message, field, Number(field, reflection->GetUInt64(message, field)));
        }
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        if (!repeated) {
          reflection->SetUInt32(&message, field,
                                static_cast<uint32_t>(Number(field, reflection->GetUInt32(message, field))));
        }
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        if (!repeated) {
          reflection->SetString(&message, field, Text(field, reflection->GetString(message, field)));
        }
        break;
      default:
        break;
    }
  }
}

void WirePool::ResolveMessage(Message& message) const {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    ResolveField(message, field);
  }
}

void WirePool::Resolve(Message& request) const {
  MutexLock lock(mutex_);
  ResolveMessage(request);
}

uint64_t WirePool::Value(const std::string& pool, size_t index) const {
  MutexLock lock(mutex_);
  const auto found = numbers_.find(pool);
  return found == numbers_.end() || found->second.empty() ? 0 : found->second[index % found->second.size()];
}

std::vector<std::string> WirePool::secrets() const {
  MutexLock lock(mutex_);
  const auto found = texts_.find("secret");
  return found == texts_.end() ? std::vector<std::string>() : found->second;
}

}  // namespace rnicd::fuzz
