#include "tests/support/leak_finder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"

namespace rnicd::test {
namespace {

// Smaller numbers occur in every log, as pids, sizes and times.
constexpr uint32_t kFirstDistinctiveToken = 1U << 24;

std::string RawBytes(uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>(value >> shift);
  }
  return bytes;
}

// Escapes bytes as JSON libraries escape non-ASCII bytes: "\u00e9" for each.
std::string EscapedAsJson(std::string_view bytes) {
  std::string escaped;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    escaped += byte >= 0x20 && byte < 0x7f ? std::string(1, c) : absl::StrFormat("\\u%04x", byte);
  }
  return escaped;
}

std::set<std::string> WordsOf(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      word += absl::ascii_tolower(static_cast<unsigned char>(c));
    } else {
      words.insert(std::exchange(word, ""));
    }
  }
  words.insert(word);
  return words;
}

}  // namespace

void LeakFinder::AddToken(const std::string& name, uint32_t token) {
  Needle needle{.name = name};
  needle.words = {absl::StrFormat("0x%x", token), absl::StrFormat("0x%08x", token)};
  if (token >= kFirstDistinctiveToken) {
    const std::string raw = RawBytes(token);
    needle.words.insert(needle.words.end(),
                        {absl::StrFormat("%x", token), absl::StrFormat("%08x", token), absl::StrFormat("%u", token)});
    needle.parts = {raw, std::string(raw.rbegin(), raw.rend())};
  }
  needles_.push_back(needle);
}

void LeakFinder::AddBytes(const std::string& name, std::string_view bytes) {
  const std::string raw(bytes);
  const std::string hex = absl::BytesToHexString(raw);
  needles_.push_back(
      {.name = name,
       .parts = {raw, hex, absl::AsciiStrToUpper(hex), absl::Base64Escape(raw), absl::WebSafeBase64Escape(raw),
                 EscapedAsJson(raw), absl::CHexEscape(raw), absl::CEscape(raw)}});
}

void LeakFinder::AddGrant(const std::string& name, const std::string& secret) {
  AddBytes(name, secret);
  AddBytes(name, secret.substr(secret.rfind('-') + 1));
}

std::vector<std::string> LeakFinder::FindIn(std::string_view text) const {
  const std::set<std::string> words = WordsOf(text);
  std::vector<std::string> found;
  for (const Needle& needle : needles_) {
    const bool stands_alone = std::any_of(needle.words.begin(), needle.words.end(),
                                          [&](const std::string& word) { return words.contains(word); });
    const bool stands_anywhere = std::any_of(needle.parts.begin(), needle.parts.end(), [&](const std::string& part) {
      return text.find(part) != std::string_view::npos;
    });
    if (stands_alone || stands_anywhere) {
      found.push_back(needle.name);
    }
  }
  return found;
}

}  // namespace rnicd::test
