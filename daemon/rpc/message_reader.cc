#include "daemon/rpc/message_reader.h"

#include <algorithm>

namespace rnicd::rpc {

MessageReader::Event MessageReader::Add(std::string_view& bytes) {
  while (prefix_size_ < kPrefixBytes && !bytes.empty()) {
    prefix_[prefix_size_++] = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    if (prefix_size_ == kPrefixBytes) {
      length_ = uint32_t{prefix_[1]} << 24U | uint32_t{prefix_[2]} << 16U | uint32_t{prefix_[3]} << 8U | prefix_[4];
      return prefix_[0] == 0 ? Event::kLength : Event::kCompressed;
    }
  }
  const size_t taken = std::min<size_t>(bytes.size(), length_ - message_.size());
  message_.append(bytes.substr(0, taken));
  bytes.remove_prefix(taken);
  return bytes.empty() ? Event::kNone : Event::kSecond;
}

std::string PrefixOf(size_t message_bytes) {
  std::string prefix(1, '\0');
  for (unsigned shift = 32; shift > 0;) {
    shift -= 8;
    prefix.push_back(static_cast<char>(message_bytes >> shift & 0xFFU));
  }
  return prefix;
}

}  // namespace rnicd::rpc
