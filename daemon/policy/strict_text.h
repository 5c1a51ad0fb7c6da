#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"

// Protobuf's text format, read as strictly as a file that hands out rights must be, with the lines of what it says.
namespace rnicd::policy {

// What is wrong with a text, and in which lines.
class Complaints {
 public:
  // `line` from 1.
  void Add(int line, std::string_view what);
  bool empty() const { return complaints_.empty(); }
  // kInvalidArgument with "FILE:LINE: REASON" for each, in the order of lines, at most kComplaintsMax of them.
  absl::Status ToStatus(std::string_view file_name) const;

 private:
  // By line; those of one line in the order in which they came.
  std::multimap<int, std::string> complaints_;
};
inline constexpr size_t kComplaintsMax = 20;

// Where one message of a parsed text stands, and its fields. Fields are named by their numbers.
// Lifetime: the tree outlives it.
class Place {
 public:
  // The whole text.
  Place(const google::protobuf::Descriptor* type, const google::protobuf::TextFormat::ParseInfoTree* tree)
      : Place(type, tree, 1) {}

  int line() const { return line_; }
  // Whether the text has the field, be it with the value that it has anyway. Not for repeated fields.
  bool Has(int field) const;
  // The line of the field; the message's when the text does not have it. Not for repeated fields.
  int LineOf(int field) const;
  int LineOf(std::string_view field) const { return LineOf(NumberOf(field)); }
  // Where the message in the field stands.
  Place In(int field) const;
  // Likewise in a repeated field, of which the message has `count`.
  Place In(int field, int index, int count) const;

 private:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;
  Place(const google::protobuf::Descriptor* type, const Tree* tree, int line) : type_(type), tree_(tree), line_(line) {}

  int NumberOf(std::string_view field) const;
  // Of the first field that the message has; 0 when it has none.
  int FirstLine() const;
  // 0 when the text does not have it.
  int LineOf(const google::protobuf::FieldDescriptor* field, int index) const;

  const google::protobuf::Descriptor* type_;
  // Null when nothing is known of the fields.
  const Tree* tree_;
  int line_;
};

// Fills `message` and `tree`. False, with a complaint, for all that the text format refuses, and for what it would let
// pass: a field twice with a first value of zero, a number that the enumeration does not have, a reserved name.
bool ReadStrictly(std::string_view text, google::protobuf::Message& message,
                  google::protobuf::TextFormat::ParseInfoTree& tree, Complaints& complaints);

}  // namespace rnicd::policy
