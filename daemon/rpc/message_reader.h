#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace rnicd::rpc {

// Takes the single message of a request out of its DATA frames: a byte that says whether it is compressed, four bytes
// of its length, and the message. Buffers nothing before its length was seen and accepted. Source: gRPC over HTTP2,
// "Length-Prefixed-Message".
class MessageReader {
 public:
  enum class Event : uint8_t {
    // More bytes may come.
    kNone,
    // The length is known; the caller must Accept it before it adds more bytes.
    kLength,
    kCompressed,
    // Bytes after the message: a second one.
    kSecond,
  };

  // Takes bytes from the front of `bytes`, up to the next event.
  Event Add(std::string_view& bytes);
  uint32_t length() const { return length_; }
  // Allocates exactly what the message needs, which a growing text would exceed.
  void Accept() {
    accepted_ = true;
    message_.reserve(length_);
  }
  // True when exactly one message has arrived.
  bool complete() const { return accepted_ && message_.size() == length_; }
  std::string TakeMessage() { return std::move(message_); }

 private:
  static constexpr size_t kPrefixBytes = 5;

  std::array<unsigned char, kPrefixBytes> prefix_{};
  size_t prefix_size_ = 0;
  uint32_t length_ = 0;
  bool accepted_ = false;
  std::string message_;
};

// The prefix of an uncompressed message.
std::string PrefixOf(size_t message_bytes);

}  // namespace rnicd::rpc
