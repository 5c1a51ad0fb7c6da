#include "daemon/policy/strict_text.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rnicd::policy {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorProto;
using google::protobuf::FieldDescriptor;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// A reason may quote the file, and the file may contain anything.
constexpr size_t kReasonBytesMax = 300;

class IgnoredErrors final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

// The line of the last token that begins before this one; both from 0.
int LineOfTokenBefore(std::string_view text, int line, int column) {
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  IgnoredErrors collector;
  google::protobuf::io::Tokenizer tokenizer(&stream, &collector);
  tokenizer.set_comment_style(google::protobuf::io::Tokenizer::SH_COMMENT_STYLE);
  int before = 0;
  while (tokenizer.Next()) {
    const auto& token = tokenizer.current();
    if (token.line > line || (token.line == line && token.column >= column)) {
      break;
    }
    before = token.line;
  }
  return before;
}

class ParserErrorCollector final : public google::protobuf::io::ErrorCollector {
 public:
  ParserErrorCollector(std::string_view text, ParseErrors& errors) : text_(text), errors_(errors) {}

  // Lines are counted from 0; -1 when the error has no line.
  void AddError(int line, int column, const std::string& message) override {
    // The parser has advanced to the next token, often on the next line, before it detects an unknown name.
    const bool is_late = message.starts_with("Unknown enumeration value");
    errors_.Add((is_late ? LineOfTokenBefore(text_, line, column) : line) + 1, message);
  }
  void AddWarning(int line, int column, const std::string& message) override { AddError(line, column, message); }

 private:
  const std::string_view text_;
  ParseErrors& errors_;
};

bool Parse(std::string_view text, Message& message, TextFormat::ParseInfoTree* tree, ParseErrors& errors) {
  ParserErrorCollector collector(text, errors);
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(tree);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  return parser.Parse(&stream, &message) && errors.empty();
}

// Gives every field presence, and removes the reserved names, which the parser would skip.
void MakeStrict(DescriptorProto& type) {
  int made_up_oneofs = 0;
  for (FieldDescriptorProto& field : *type.mutable_field()) {
    if (field.proto3_optional()) {
      field.clear_proto3_optional();
      field.clear_oneof_index();
      ++made_up_oneofs;
    }
  }
  // The oneofs that represent "optional" are behind all others.
  for (; made_up_oneofs > 0; --made_up_oneofs) {
    type.mutable_oneof_decl()->RemoveLast();
  }
  type.clear_reserved_name();
  for (DescriptorProto& nested : *type.mutable_nested_type()) {
    MakeStrict(nested);
  }
}

// Parses the text as if the type's file were proto2: there a field records whether it was set, even to zero, so that
// the parser detects every repetition, and enumerations are closed.
bool PassesAsProto2(std::string_view text, const Descriptor* type, ParseErrors& errors) {
  google::protobuf::FileDescriptorProto file;
  type->file()->CopyTo(&file);
  file.set_syntax("proto2");
  for (DescriptorProto& message : *file.mutable_message_type()) {
    MakeStrict(message);
  }
  google::protobuf::DescriptorPool pool;
  if (pool.BuildFile(file) == nullptr) {
    errors.Add(1, absl::StrCat(file.name(), " cannot be read strictly: a fault of the daemon"));
    return false;
  }
  google::protobuf::DynamicMessageFactory factory(&pool);
  const std::unique_ptr<Message> message(factory.GetPrototype(pool.FindMessageTypeByName(type->full_name()))->New());
  return Parse(text, *message, nullptr, errors);
}

std::string Printable(std::string_view text) {
  std::string result(text.substr(0, kReasonBytesMax));
  std::replace_if(result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kReasonBytesMax ? result + "..." : result;
}

}  // namespace

void ParseErrors::Add(int line, std::string_view what) { errors_.emplace(std::max(line, 1), Printable(what)); }

absl::Status ParseErrors::ToStatus(std::string_view file_name) const {
  std::vector<std::string> lines;
  for (const auto& [line, what] : errors_) {
    if (lines.size() == kParseErrorsMax) {
      break;
    }
    lines.push_back(absl::StrCat(std::string(file_name), ":", line, ": ", what));
  }
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

int SourceLocation::NumberOf(std::string_view field) const {
  return type_->FindFieldByName(std::string(field))->number();
}

int SourceLocation::LineOf(const FieldDescriptor* field, int index) const {
  return tree_ == nullptr ? 0 : tree_->GetLocation(field, index).line + 1;
}

bool SourceLocation::Has(int field) const { return LineOf(type_->FindFieldByNumber(field), -1) > 0; }

int SourceLocation::LineOf(int field) const {
  const int line = LineOf(type_->FindFieldByNumber(field), -1);
  return line > 0 ? line : line_;
}

SourceLocation SourceLocation::In(int field) const {
  const FieldDescriptor* descriptor = type_->FindFieldByNumber(field);
  return {descriptor->message_type(), tree_ == nullptr ? nullptr : tree_->GetTreeForNested(descriptor, -1),
          LineOf(field)};
}

SourceLocation SourceLocation::In(int field, int index, int count) const {
  const FieldDescriptor* descriptor = type_->FindFieldByNumber(field);
  SourceLocation location(descriptor->message_type(),
                          tree_ == nullptr ? nullptr : tree_->GetTreeForNested(descriptor, index),
                          LineOf(descriptor, index));
  if (LineOf(descriptor, count - 1) == 0) {
    // A list, "match: [{...}, {...}]": the parser records only where it begins.
    const int inside = location.FirstLine();
    location.line_ = inside > 0 ? inside : std::max(LineOf(descriptor, 0), line_);
  }
  return location;
}

int SourceLocation::FirstLine() const {
  int first = 0;
  for (int index = 0; index < type_->field_count(); ++index) {
    const FieldDescriptor* field = type_->field(index);
    const int line = LineOf(field, field->is_repeated() ? 0 : -1);
    if (line > 0 && (first == 0 || line < first)) {
      first = line;
    }
  }
  return first;
}

bool ReadStrictly(std::string_view text, Message& message, TextFormat::ParseInfoTree& tree, ParseErrors& errors) {
  return PassesAsProto2(text, message.GetDescriptor(), errors) && Parse(text, message, &tree, errors);
}

}  // namespace rnicd::policy
