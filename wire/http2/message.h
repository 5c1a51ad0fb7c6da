#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Source: gRPC over HTTP2, "Length-Prefixed-Message".
namespace rnicd::http2 {

// A byte that says whether the message is compressed, and four of its length, the highest first.
inline constexpr size_t kPrefixBytes = 5;

// What precedes an uncompressed message of so many bytes, at most UINT32_MAX.
std::string PrefixOf(size_t message_bytes);

struct Prefix {
  bool compressed;
  uint32_t length;
};

// `bytes` are kPrefixBytes.
Prefix ReadPrefix(std::string_view bytes);

// The messages that arrive on one stream, in pieces of any size. What it keeps is bounded by the stream's flow control
// and by one message. Threads: one.
class MessageReader {
 public:
  // No message may have more bytes.
  explicit MessageReader(uint32_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  // False when the peer breaks the protocol, by a compressed or too long message: nothing more may be added then.
  bool Add(std::string_view bytes);
  // Whether Next has one.
  bool has_next() const { return taken_ < whole_.size(); }
  // The oldest whole message that was not taken; empty when there is none.
  std::optional<std::string> Next();
  // False while a message has begun and is not whole: no stream may end so.
  bool empty() const { return prefix_.empty(); }

 private:
  bool AcceptPrefix();

  const uint32_t message_bytes_max_;
  // What has arrived of the message that is not whole.
  std::string prefix_;
  uint32_t length_ = 0;
  std::string message_;
  // Whole messages, of which the first `taken_` are gone.
  std::vector<std::string> whole_;
  size_t taken_ = 0;
};

}  // namespace rnicd::http2
