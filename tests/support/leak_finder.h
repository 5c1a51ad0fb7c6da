#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rnicd::test {

// Collects the daemon's secrets and finds them in text that must not contain them, in every form in which a program
// might have written them.
class LeakFinder {
 public:
  // A memory token: found as a separate number, decimal or hexadecimal, and as raw bytes. A small token could be any
  // number, so it is found as "0x..." only.
  void AddToken(const std::string& name, uint32_t token);
  // A ticket or any other bytes: raw, escaped, as hexadecimal digits, in base64.
  void AddBytes(const std::string& name, std::string_view bytes);
  // The secret of a grant, or its random part; also found in every form of AddBytes.
  void AddGrant(const std::string& name, const std::string& secret);

  size_t size() const { return needles_.size(); }
  // The names of all secrets found in the text.
  std::vector<std::string> FindIn(std::string_view text) const;

 private:
  struct Needle {
    std::string name;
    // Matched anywhere.
    std::vector<std::string> parts;
    // Matched only between characters that are neither letters nor digits; lower case.
    std::vector<std::string> words;
  };
  std::vector<Needle> needles_;
};

}  // namespace rnicd::test
