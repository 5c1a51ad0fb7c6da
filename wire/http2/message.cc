#include "wire/http2/message.h"

#include <algorithm>
#include <utility>

namespace rnicd::http2 {

std::string PrefixOf(size_t message_bytes) {
  std::string prefix(1, '\0');
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    prefix.push_back(static_cast<char>(message_bytes >> shift));
  }
  return prefix;
}

Prefix ReadPrefix(std::string_view bytes) {
  uint32_t length = 0;
  for (const char byte : bytes.substr(1, kPrefixBytes - 1)) {
    length = length << 8U | static_cast<unsigned char>(byte);
  }
  return {.compressed = bytes[0] != 0, .length = length};
}

bool MessageReader::Add(std::string_view bytes) {
  while (!bytes.empty()) {
    if (prefix_.size() < kPrefixBytes) {
      const size_t taken = std::min(bytes.size(), kPrefixBytes - prefix_.size());
      prefix_.append(bytes.substr(0, taken));
      bytes.remove_prefix(taken);
      if (prefix_.size() < kPrefixBytes) {
        return true;
      }
      if (!AcceptPrefix()) {
        return false;
      }
    }
    const size_t taken = std::min(bytes.size(), length_ - message_.size());
    message_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (message_.size() == length_) {
      whole_.push_back(std::exchange(message_, {}));
      prefix_.clear();
    }
  }
  return true;
}

bool MessageReader::AcceptPrefix() {
  const Prefix prefix = ReadPrefix(prefix_);
  if (prefix.compressed || prefix.length > message_bytes_max_) {
    return false;
  }
  length_ = prefix.length;
  message_.reserve(length_);  // Exactly what it needs, which a growing text would exceed.
  return true;
}

std::optional<std::string> MessageReader::Next() {
  if (taken_ == whole_.size()) {
    return std::nullopt;
  }
  std::string message = std::move(whole_[taken_++]);
  if (taken_ == whole_.size()) {
    whole_.clear();
    taken_ = 0;
  }
  return message;
}

}  // namespace rnicd::http2
