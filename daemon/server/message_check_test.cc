#include "daemon/server/message_check.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/wire_format_lite.h>

#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/status.h"
#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr uint64_t kManyParts = 1'000'000;
constexpr char kNotUtf8[] = "\xff\xfe";

// A type with a field of each type, single and repeated, and another with only some of these fields.
class Types {
 public:
  Types() {
    google::protobuf::FileDescriptorProto file;
    file.set_name("types.proto");
    file.set_syntax("proto3");
    auto* const all = file.add_message_type();
    all->set_name("All");
    auto* const few = file.add_message_type();
    few->set_name("Few");
    for (int type = 1; type <= FieldDescriptorProto::Type_MAX; ++type) {
      if (type != FieldDescriptorProto::TYPE_GROUP && type != FieldDescriptorProto::TYPE_ENUM) {
        AddField(*all, type, FieldDescriptorProto::LABEL_OPTIONAL, type);
        AddField(*all, type, FieldDescriptorProto::LABEL_REPEATED, 100 + type);
      }
    }
    AddField(*few, FieldDescriptorProto::TYPE_STRING, FieldDescriptorProto::LABEL_OPTIONAL, 9);
    const auto* const built = pool_.BuildFile(file);
    all_ = built->FindMessageTypeByName("All");
    few_ = built->FindMessageTypeByName("Few");
  }

  std::unique_ptr<Message> NewAll() { return std::unique_ptr<Message>(factory_.GetPrototype(all_)->New()); }
  std::unique_ptr<Message> NewFew() { return std::unique_ptr<Message>(factory_.GetPrototype(few_)->New()); }

 private:
  static void AddField(google::protobuf::DescriptorProto& type, int field_type, FieldDescriptorProto::Label label,
                       int number) {
    auto* const field = type.add_field();
    field->set_name("f" + std::to_string(number));
    field->set_number(number);
    field->set_type(static_cast<FieldDescriptorProto::Type>(field_type));
    field->set_label(label);
    if (field_type == FieldDescriptorProto::TYPE_MESSAGE) {
      field->set_type_name(".All");
    }
  }

  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_;
  const Descriptor* all_ = nullptr;
  const Descriptor* few_ = nullptr;
};

// A random value; small ones are the most likely.
uint64_t Number(std::mt19937_64& random) { return random() >> random() % 64; }

std::string Text(std::mt19937_64& random) {
  std::string text;
  for (uint64_t letters = random() % 20; letters > 0; --letters) {
    text += random() % 4 == 0 ? "\xc3\xa9" : "x";
  }
  return text;
}

void Fill(Message& message, std::mt19937_64& random, int depth);

template <typename Value>
using Setter = void (Reflection::*)(Message*, const FieldDescriptor*, Value) const;

template <typename Value>
void Set(Message& message, const FieldDescriptor& field, Setter<Value> set, Setter<Value> add, Value value) {
  (message.GetReflection()->*(field.is_repeated() ? add : set))(&message, &field, std::move(value));
}

void SetRandomly(Message& message, const FieldDescriptor& field, std::mt19937_64& random, int depth) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return Set<int32_t>(message, field, &Reflection::SetInt32, &Reflection::AddInt32,
                          static_cast<int32_t>(Number(random)));
    case FieldDescriptor::CPPTYPE_INT64:
      return Set<int64_t>(message, field, &Reflection::SetInt64, &Reflection::AddInt64,
                          static_cast<int64_t>(Number(random)));
    case FieldDescriptor::CPPTYPE_UINT32:
      return Set<uint32_t>(message, field, &Reflection::SetUInt32, &Reflection::AddUInt32,
                           static_cast<uint32_t>(Number(random)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return Set<uint64_t>(message, field, &Reflection::SetUInt64, &Reflection::AddUInt64, Number(random));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Set<double>(message, field, &Reflection::SetDouble, &Reflection::AddDouble, 0.5);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Set<float>(message, field, &Reflection::SetFloat, &Reflection::AddFloat, 0.5F);
    case FieldDescriptor::CPPTYPE_BOOL:
      return Set<bool>(message, field, &Reflection::SetBool, &Reflection::AddBool, true);
    case FieldDescriptor::CPPTYPE_STRING:
      return Set<std::string>(message, field, &Reflection::SetString, &Reflection::AddString,
                              field.type() == FieldDescriptor::TYPE_BYTES ? kNotUtf8 : Text(random));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Fill(
          field.is_repeated() ? *reflection.AddMessage(&message, &field) : *reflection.MutableMessage(&message, &field),
          random, depth - 1);
    case FieldDescriptor::CPPTYPE_ENUM:
      return;
  }
}

void Fill(Message& message, std::mt19937_64& random, int depth) {
  const Descriptor& type = *message.GetDescriptor();
  for (int index = 0; depth > 0 && index < type.field_count(); ++index) {
    const FieldDescriptor& field = *type.field(index);
    for (uint64_t times = random() % (field.is_repeated() ? 4 : 2); times > 0; --times) {
      SetRandomly(message, field, random, depth);
    }
  }
}

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) {
    bytes.push_back(static_cast<char>(value | 0x80U));
  }
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

// A tag and what follows it.
std::string Field(uint64_t number, unsigned wire_type, const std::string& rest) {
  return Varint(number << 3U | wire_type) + rest;
}
std::string Part(uint64_t number, const std::string& bytes) { return Field(number, 2, Varint(bytes.size()) + bytes); }

absl::StatusOr<uint64_t> Check(const Message& type, const std::string& bytes, uint64_t parts_max = kManyParts) {
  return CheckMessage(*type.GetDescriptor(), bytes, parts_max);
}

void ExpectMalformed(const Message& type, const std::string& bytes, const std::string& field = {}) {
  const absl::Status status = Check(type, bytes).status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::MESSAGE_MALFORMED)) << status;
  EXPECT_EQ(ErrorInfoOf(status).field, field);
}

// Numbers of the fields of Types' messages: the type's number, and 100 more when it is repeated.
constexpr int kFixed64 = FieldDescriptorProto::TYPE_FIXED64;
constexpr int kString = FieldDescriptorProto::TYPE_STRING;
constexpr int kBytes = FieldDescriptorProto::TYPE_BYTES;
constexpr int kMessage = FieldDescriptorProto::TYPE_MESSAGE;
constexpr int kUint64 = FieldDescriptorProto::TYPE_UINT64;
constexpr int kRepeated = 100;

class CheckMessageTest : public testing::Test {
 protected:
  Types types_;
  const std::unique_ptr<Message> all_ = types_.NewAll();
  const std::unique_ptr<Message> few_ = types_.NewFew();
};

TEST_F(CheckMessageTest, AnEmptyMessageHasNoParts) { EXPECT_EQ(*Check(*all_, ""), 0u); }

TEST_F(CheckMessageTest, PartsAreMessagesTextsAndWhatIsUnknown) {
  EXPECT_EQ(*Check(*all_, Field(kUint64, 0, Varint(7))), 0u);
  EXPECT_EQ(*Check(*all_, Part(kRepeated + kUint64, Varint(7) + Varint(1U << 20U))), 0u);
  EXPECT_EQ(*Check(*all_, Part(kString, "a")), 1u);
  EXPECT_EQ(*Check(*all_, Part(kBytes, kNotUtf8)), 1u);
  EXPECT_EQ(*Check(*all_, Part(kMessage, "")), 1u);
  EXPECT_EQ(*Check(*all_, Part(kMessage, Part(kMessage, Part(kString, "a")))), 3u);
  EXPECT_EQ(*Check(*all_, Field(99, 0, Varint(7))), 1u);
  EXPECT_EQ(*Check(*all_, Field(99, 1, std::string(8, '\0'))), 1u);
  EXPECT_EQ(*Check(*all_, Field(99, 5, std::string(4, '\0'))), 1u);
  EXPECT_EQ(*Check(*all_, Part(99, kNotUtf8)), 1u);
}

// The parser keeps a value whose form is not that of its field as an unknown field.
TEST_F(CheckMessageTest, AFieldInAnotherFormIsAPart) {
  EXPECT_EQ(*Check(*all_, Field(kString, 0, Varint(7))), 1u);
  EXPECT_EQ(*Check(*all_, Part(kUint64, Varint(7))), 1u);
  EXPECT_EQ(*Check(*all_, Field(kFixed64, 5, std::string(4, '\0'))), 1u);
}

TEST_F(CheckMessageTest, OnePartTooManyIsRefusedWithTheLimit) {
  const std::string three = Part(kString, "a") + Part(kMessage, Part(kString, "b"));
  EXPECT_EQ(*Check(*all_, three, 3), 3u);
  const absl::Status status = Check(*all_, three, 2).status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::MESSAGE_TOO_COMPLEX)) << status;
  EXPECT_EQ(ErrorInfoOf(status).limit, 2u);
  EXPECT_EQ(ErrorInfoOf(status).requested, 3u);
}

// The parser would make two million objects of them.
TEST_F(CheckMessageTest, AMessageOfEmptyEntriesIsRefusedAtTheLimit) {
  const v1::RegisterMrRequest type;
  std::string bytes;
  while (bytes.size() < 4U << 20U) {
    bytes += Part(v1::RegisterMrRequest::kMdlChainFieldNumber, "");
  }
  const absl::Status status = Check(type, bytes, 1000).status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::MESSAGE_TOO_COMPLEX)) << status;
  EXPECT_EQ(ErrorInfoOf(status).requested, 1001u);
}

TEST_F(CheckMessageTest, AMessageThatIsCutOffIsMalformed) {
  const std::array whole = {Field(kUint64, 0, Varint(1U << 20U)),
                            Field(kFixed64, 1, std::string(8, 'x')),
                            Field(FieldDescriptorProto::TYPE_FLOAT, 5, std::string(4, 'x')),
                            Part(kString, "text"),
                            Part(kBytes, "bytes"),
                            Part(kMessage, Part(kString, "text")),
                            Part(kRepeated + kFixed64, std::string(16, 'x')),
                            Field(200, 0, Varint(1U << 20U)),
                            Part(201, "unknown")};
  for (const std::string& bytes : whole) {
    EXPECT_TRUE(Check(*all_, bytes).ok());
    for (size_t size = 1; size < bytes.size(); ++size) {
      EXPECT_TRUE(FailedWith(Check(*all_, bytes.substr(0, size)).status(), ErrorReason::MESSAGE_MALFORMED))
          << size << " of " << bytes.size();
    }
  }
}

TEST_F(CheckMessageTest, WhatIsMalformedNamesItsField) {
  const v1::RegisterMrRequest request;
  const int chain = v1::RegisterMrRequest::kMdlChainFieldNumber;
  const std::string good = Part(chain, Field(v1::MdlEntry::kMemoryIdFieldNumber, 0, Varint(1)));
  const std::string cut = Part(chain, Field(v1::MdlEntry::kMemoryIdFieldNumber, 0, "\x80"));
  ExpectMalformed(request, good + good + good + cut, "mdl_chain[3].memory_id");
  ExpectMalformed(request, Field(chain, 2, Varint(5)), "mdl_chain[0]");
}

TEST_F(CheckMessageTest, AnIndexCountsOnlyTheFieldsOfItsNumber) {
  const std::string chain = Part(v1::RegisterMrRequest::kMdlChainFieldNumber, "");
  const std::string other = Field(v1::RegisterMrRequest::kMrIdFieldNumber, 0, Varint(1)) + Part(201, "unknown");
  ExpectMalformed(v1::RegisterMrRequest(),
                  chain + other + chain + other + Part(v1::RegisterMrRequest::kMdlChainFieldNumber, "\x80"),
                  "mdl_chain[2]");
}

TEST_F(CheckMessageTest, ATextThatIsNotUtf8NamesItsField) {
  ExpectMalformed(v1::OpenSessionRequest(), Part(v1::OpenSessionRequest::kGrantFieldNumber, kNotUtf8), "grant");
  ExpectMalformed(*all_, Part(kMessage, Part(kRepeated + kString, "a") + Part(kRepeated + kString, kNotUtf8)),
                  "f11.f109[1]");
}

TEST_F(CheckMessageTest, GroupsAreRefused) {
  ExpectMalformed(*all_, Field(99, 3, "") + Field(99, 4, ""));
  ExpectMalformed(*all_, Field(99, 4, ""));
  ExpectMalformed(*all_, Field(kMessage, 3, "") + Field(kMessage, 4, ""), "f11");
}

TEST_F(CheckMessageTest, WhatTheParserCallsMalformedIsMalformed) {
  ExpectMalformed(*all_, std::string(1, '\0'));
  ExpectMalformed(*all_, std::string(1, '\x02') + std::string(1, '\0'));  // Field 0.
  ExpectMalformed(*all_, Field(99, 6, ""));
  ExpectMalformed(*all_, Field(99, 7, ""));
  ExpectMalformed(*all_, "\xb8\x80\x80\x80\x80\x01");                              // A tag of six bytes.
  ExpectMalformed(*all_, Field(kString, 2, "\x80\x80\x80\x80\x80") + '\0', "f9");  // A length of six bytes.
  ExpectMalformed(*all_, Field(kString, 2, "\x81\x80\x80\x80\x10x"), "f9");        // A length of 2^32 and one.
  ExpectMalformed(*all_, Field(kUint64, 0, std::string(10, '\xff')), "f4");
  ExpectMalformed(*all_, Part(kRepeated + kUint64, "\x01\x80"), "f104");
  ExpectMalformed(*all_, Part(kRepeated + kFixed64, "1234567"), "f106");
}

TEST_F(CheckMessageTest, GoesAsDeepAsTheParser) {
  std::string bytes;
  for (int depth = 0; depth <= 110; ++depth) {
    EXPECT_EQ(Check(*all_, bytes).ok(), types_.NewAll()->ParseFromString(bytes)) << depth;
    bytes = Part(kMessage, bytes);
  }
}

// Also with fields that the reader's type does not have.
TEST_F(CheckMessageTest, AcceptsEveryMessageThatWasWritten) {
  std::mt19937_64 random(20);
  for (int round = 0; round < 300; ++round) {
    const std::unique_ptr<Message> message = types_.NewAll();
    Fill(*message, random, 3);
    const std::string bytes = message->SerializeAsString();
    EXPECT_TRUE(Check(*all_, bytes).ok()) << message->DebugString();
    EXPECT_TRUE(Check(*few_, bytes).ok()) << message->DebugString();
  }
}

TEST_F(CheckMessageTest, WhatItAcceptsParses) {
  std::mt19937_64 random(21);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::unique_ptr<Message> message = types_.NewAll();
    Fill(*message, random, round % 3);
    std::string bytes = message->SerializeAsString();
    for (uint64_t change = random() % 4 + 1; change > 0 && !bytes.empty(); --change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (Check(*all_, bytes).ok()) {
      ++accepted;
      ASSERT_TRUE(types_.NewAll()->ParseFromString(bytes)) << "round " << round;
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace rnicd::server
