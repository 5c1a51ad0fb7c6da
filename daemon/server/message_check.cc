#include "daemon/server/message_check.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/common.h>
#include <google/protobuf/wire_format_lite.h>

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace rnicd::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Deeper than any of our messages; the parser's own limit is the same.
constexpr int kDepthMax = 100;
// Bytes of a tag or a length. The parser takes no more; CodedInputStream does, and drops what is above 32 bits.
constexpr int kPrefixBytesMax = 5;

// Walks one message after the other; stops at the first error.
class Walker {
 public:
  explicit Walker(uint64_t parts_max) : parts_max_(parts_max) {}

  absl::Status Walk(const Descriptor& type, std::string_view bytes, int depth);
  uint64_t parts() const { return parts_; }

 private:
  absl::Status Part();
  // `before` is what the message has in front of the field.
  absl::Status WalkText(const FieldDescriptor* field, std::string_view bytes, std::string_view before, int depth);
  absl::Status SkipNumber(CodedInputStream& input, const FieldDescriptor* field, uint32_t tag);

  const uint64_t parts_max_;
  uint64_t parts_ = 0;
};

absl::Status Malformed(std::string_view field = {}) { return MakeError(ErrorReason::MESSAGE_MALFORMED, field); }

// How many fields of this number are in well-formed bytes.
uint64_t CountOf(const FieldDescriptor& field, std::string_view bytes) {
  CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  uint64_t count = 0;
  for (uint32_t tag = input.ReadTag(); tag != 0 && WireFormatLite::SkipField(&input, tag); tag = input.ReadTag()) {
    count += WireFormatLite::GetTagFieldNumber(tag) == field.number() ? 1 : 0;
  }
  return count;
}

// The name in an error. Its index is counted only now: a message without an error needs none.
std::string NameOf(const FieldDescriptor& field, std::string_view before) {
  return field.is_repeated() ? absl::StrCat(field.name(), "[", CountOf(field, before), "]") : field.name();
}

// The error with the field around it.
absl::Status Inside(const std::string& name, const absl::Status& status) {
  return WithFieldPrefix(status, ErrorInfoOf(status).field.empty() ? name : name + ".");
}

// The next tag; 0 when there is none: it is cut off, too long, or names field 0.
uint32_t ReadTag(CodedInputStream& input) {
  const int begin = input.CurrentPosition();
  const uint32_t tag = input.ReadTag();
  const bool fits = input.CurrentPosition() - begin <= kPrefixBytesMax;
  return fits && WireFormatLite::GetTagFieldNumber(tag) != 0 ? tag : 0;
}

// Sets `length` to the length in front of a part; false when it is none, or passes the end.
bool ReadLength(CodedInputStream& input, size_t size, size_t* length) {
  const int begin = input.CurrentPosition();
  uint64_t value = 0;
  if (!input.ReadVarint64(&value) || input.CurrentPosition() - begin > kPrefixBytesMax ||
      value > size - static_cast<size_t>(input.CurrentPosition())) {
    return false;
  }
  *length = static_cast<size_t>(value);
  return true;
}

// True when the bytes are whole numbers of the field's type.
bool IsPacked(const FieldDescriptor& field, std::string_view bytes) {
  switch (WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type()))) {
    case WireFormatLite::WIRETYPE_FIXED64:
      return bytes.size() % sizeof(uint64_t) == 0;
    case WireFormatLite::WIRETYPE_FIXED32:
      return bytes.size() % sizeof(uint32_t) == 0;
    default:
      break;
  }
  CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  uint64_t ignored = 0;
  while (input.CurrentPosition() < static_cast<int>(bytes.size())) {
    if (!input.ReadVarint64(&ignored)) {
      return false;
    }
  }
  return true;
}

absl::Status Walker::Part() {
  if (++parts_ > parts_max_) {
    return MakeError({.reason = ErrorReason::MESSAGE_TOO_COMPLEX, .limit = parts_max_, .requested = parts_});
  }
  return absl::OkStatus();
}

absl::Status Walker::Walk(const Descriptor& type, std::string_view bytes, int depth) {
  if (depth > kDepthMax || bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return Malformed();
  }
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  CodedInputStream input(data, static_cast<int>(bytes.size()));
  while (input.CurrentPosition() < static_cast<int>(bytes.size())) {
    const std::string_view before = bytes.substr(0, static_cast<size_t>(input.CurrentPosition()));
    const uint32_t tag = ReadTag(input);
    if (tag == 0) {
      return Malformed();
    }
    const FieldDescriptor* const field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      RNICD_RETURN_IF_ERROR(SkipNumber(input, field, tag));
      continue;
    }
    size_t length = 0;
    if (!ReadLength(input, bytes.size(), &length)) {
      return Malformed(field == nullptr ? std::string() : NameOf(*field, before));
    }
    const std::string_view part = bytes.substr(static_cast<size_t>(input.CurrentPosition()), length);
    RNICD_RETURN_IF_ERROR(WalkText(field, part, before, depth));
    input.Skip(static_cast<int>(length));
  }
  return absl::OkStatus();
}

// A field with a length: a message, a text, bytes, packed numbers, or something unknown.
absl::Status Walker::WalkText(const FieldDescriptor* field, std::string_view bytes, std::string_view before,
                              int depth) {
  if (field == nullptr) {
    return Part();
  }
  switch (field->type()) {
    case FieldDescriptor::TYPE_MESSAGE:
      RNICD_RETURN_IF_ERROR(Part());
      if (const absl::Status inside = Walk(*field->message_type(), bytes, depth + 1); !inside.ok()) {
        return Inside(NameOf(*field, before), inside);
      }
      return absl::OkStatus();
    case FieldDescriptor::TYPE_STRING:
      RNICD_RETURN_IF_ERROR(Part());
      return google::protobuf::internal::IsStructurallyValidUTF8(bytes.data(), static_cast<int>(bytes.size()))
                 ? absl::OkStatus()
                 : Malformed(NameOf(*field, before));
    case FieldDescriptor::TYPE_BYTES:
      return Part();
    default:
      // Packed numbers take eight times their bytes at most.
      if (!field->is_packable()) {
        return Part();
      }
      return IsPacked(*field, bytes) ? absl::OkStatus() : Malformed(field->name());
  }
}

// A number. Groups, which no message of ours has, could nest parts that are not counted.
absl::Status Walker::SkipNumber(CodedInputStream& input, const FieldDescriptor* field, uint32_t tag) {
  const auto wire_type = WireFormatLite::GetTagWireType(tag);
  const bool is_group =
      wire_type == WireFormatLite::WIRETYPE_START_GROUP || wire_type == WireFormatLite::WIRETYPE_END_GROUP;
  if (is_group || !WireFormatLite::SkipField(&input, tag)) {
    return Malformed(field == nullptr ? std::string_view() : std::string_view(field->name()));
  }
  // A value whose form is not that of its type is kept as an unknown field.
  const bool is_known = field != nullptr && WireFormatLite::WireTypeForFieldType(
                                                static_cast<WireFormatLite::FieldType>(field->type())) == wire_type;
  return is_known ? absl::OkStatus() : Part();
}

}  // namespace

absl::StatusOr<uint64_t> CheckMessage(const Descriptor& type, std::string_view bytes, uint64_t parts_max) {
  Walker walker(parts_max);
  RNICD_RETURN_IF_ERROR(walker.Walk(type, bytes, 0));
  return walker.parts();
}

}  // namespace rnicd::server
