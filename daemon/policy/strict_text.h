#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"

// Protobuf's text format, parsed as strictly as a file that grants rights requires, with the source lines of its
// fields.
namespace rnicd::policy {

// The errors in a text, with their lines.
class ParseErrors {
 public:
  // `line` counts from 1.
  void Add(int line, std::string_view what);
  bool empty() const { return errors_.empty(); }
  // kInvalidArgument with "FILE:LINE: REASON" for each error, in the order of lines, at most kParseErrorsMax of them.
  absl::Status ToStatus(std::string_view file_name) const;

 private:
  // Errors by line; errors of one line in the order in which they were added.
  std::multimap<int, std::string> errors_;
};
inline constexpr size_t kParseErrorsMax = 20;

// The location of one message in a parsed text, and of its fields. Fields are named by their numbers.
// Lifetime: the tree outlives it.
class SourceLocation {
 public:
  // Location of the whole text.
  SourceLocation(const google::protobuf::Descriptor* type, const google::protobuf::TextFormat::ParseInfoTree* tree)
      : SourceLocation(type, tree, 1) {}

  int line() const { return line_; }
  // True when the text has the field, even with its default value. Not for repeated fields.
  bool Has(int field) const;
  // The line of the field; the message's when the text does not have it. Not for repeated fields.
  int LineOf(int field) const;
  int LineOf(std::string_view field) const { return LineOf(NumberOf(field)); }
  // Location of the message in the field.
  SourceLocation In(int field) const;
  // Location of a message in a repeated field, of which the message has `count`.
  SourceLocation In(int field, int index, int count) const;

 private:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;
  SourceLocation(const google::protobuf::Descriptor* type, const Tree* tree, int line)
      : type_(type), tree_(tree), line_(line) {}

  int NumberOf(std::string_view field) const;
  // Line of the first field that the message has; 0 when it has none.
  int FirstLine() const;
  // Line of the field; 0 when the text does not have it.
  int LineOf(const google::protobuf::FieldDescriptor* field, int index) const;

  const google::protobuf::Descriptor* type_;
  // Null when the locations of the fields are unknown.
  const Tree* tree_;
  int line_;
};

// Fills `message` and `tree`. False, with an error, for everything that the text format refuses, and for errors that it
// would accept: a field twice with a first value of zero, a number that the enumeration does not have, a reserved name.
bool ReadStrictly(std::string_view text, google::protobuf::Message& message,
                  google::protobuf::TextFormat::ParseInfoTree& tree, ParseErrors& errors);

}  // namespace rnicd::policy
