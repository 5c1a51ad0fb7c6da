#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// The rpc fuzzer's inputs: text, so that a corpus can be read and written by hand, and stays valid when the method
// table changes. One line per step:
//
//     a MemoryService.CreatePd adapter_id: &0       a call on connection a
//     a MemoryService.CreatePd =0a0b                the same with raw, possibly invalid bytes, in hexadecimal
//     a drop                                        the client of connection a disconnects and a new one connects
//     advance 5000                                  this many milliseconds pass
//     submit 0 =01000000...                         an entry, and payload behind its 64 bytes, into ring &0
//     poke 0 132 =ffffffff                          bytes at an offset of the memory of ring &0
//     scribble 0 256 =ffffffff                      the same of the mapped completion queue &0
//     # anything                                    ignored, as is every other line
//
// A number below 16 as the object of a submitted entry, or at the begin of its payload, is a reference as well.
// &0, or "&0" for text, is the first value that a response of this run had for such a field; see wire_pool.h.
namespace rnicd::fuzz {

// a, b: two connections of one process. c: of another user. o: of an operator. p: of the device plugin.
inline constexpr std::string_view kConnections = "abcop";
inline constexpr size_t kStepsMax = 48;

// First of the numbers that represent references in a message.
inline constexpr uint32_t kFirstReference = 0xfefe0000;
inline constexpr uint32_t kReferences = 0x100;

struct Step {
  enum class Kind : uint8_t { kCall, kDrop, kAdvance, kSubmit, kPoke, kScribble };

  Kind kind = Kind::kCall;
  // Connection: one of kConnections.
  char connection = 'a';
  // Method of a call; null for other steps.
  const google::protobuf::MethodDescriptor* method = nullptr;
  // Request of a call; null if the call has `bytes` instead.
  std::shared_ptr<google::protobuf::Message> request;
  std::string bytes;
  std::chrono::milliseconds advance{0};
  // Ring or queue of the last three kinds, which have `bytes`; offset of the last two.
  uint32_t index = 0;
  uint32_t offset = 0;
};
using Script = std::vector<Step>;

// Every RPC method, in the order of the method table.
const std::vector<const google::protobuf::MethodDescriptor*>& AllMethods();
std::shared_ptr<google::protobuf::Message> NewMessage(const google::protobuf::Descriptor* type);

Script ParseScript(std::string_view text);
std::string PrintScript(const Script& script);

}  // namespace rnicd::fuzz
