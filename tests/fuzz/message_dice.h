#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <random>
#include <string>

namespace rnicd::fuzz {

// Draws messages: usually with the values of a valid call, often with one wrong value.
class MessageDice {
 public:
  explicit MessageDice(uint32_t seed) : random_(seed) {}

  // A number below `end`, which is not 0.
  uint32_t Below(uint32_t end) { return random_() % end; }
  bool Chance(uint32_t percent) { return Below(100) < percent; }

  void Fill(google::protobuf::Message& message, int depth = 0);
  // Changes one field, of the message or of one inside it.
  void Change(google::protobuf::Message& message);

 private:
  void SetField(google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field, int depth);
  void AddElement(google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field, int depth);
  uint64_t Number(const google::protobuf::FieldDescriptor* field);
  std::string Text(const google::protobuf::FieldDescriptor* field);
  int Enumerator(const google::protobuf::FieldDescriptor* field);

  std::minstd_rand random_;
};

}  // namespace rnicd::fuzz
