#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// The rpc fuzzer's inputs: text, so that a corpus can be read and written by hand, and outlives a change of the method
// table. A line each:
//
//     a MemoryService.CreatePd adapter_id: &0       a call on connection a
//     a MemoryService.CreatePd =0a0b                the same with bytes that may be no message, in hexadecimal
//     a drop                                        the client of connection a goes, and another one comes
//     advance 5000                                  so many milliseconds pass
//     # anything                                    nothing; likewise every line that is none of these
//
// &0, or "&0" for text, stands for the first value that an answer of this run had for such a field; see wire_pool.h.
namespace rnicd::fuzz {

// a, b: two connections of one process. c: of another user's. o: an operator's. p: the device plugin's.
inline constexpr std::string_view kConnections = "abcop";
inline constexpr size_t kStepsMax = 48;

// References are these numbers in a message.
inline constexpr uint32_t kFirstReference = 0xfefe0000;
inline constexpr uint32_t kReferences = 0x100;

struct Step {
  enum class Kind : uint8_t { kCall, kDrop, kAdvance };

  Kind kind = Kind::kCall;
  // One of kConnections.
  char connection = 'a';
  // Of a call.
  const google::protobuf::MethodDescriptor* method = nullptr;
  // Null when the call has `bytes` instead.
  std::shared_ptr<google::protobuf::Message> request;
  std::string bytes;
  std::chrono::milliseconds advance{0};
};
using Script = std::vector<Step>;

// Every method of the wire, in the order of the method table.
const std::vector<const google::protobuf::MethodDescriptor*>& AllMethods();
std::shared_ptr<google::protobuf::Message> NewMessage(const google::protobuf::Descriptor* type);

Script ParseScript(std::string_view text);
std::string PrintScript(const Script& script);

}  // namespace rnicd::fuzz
