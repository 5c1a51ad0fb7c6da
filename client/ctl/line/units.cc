#include "client/ctl/line/units.h"

#include <array>
#include <cstdio>
#include <utility>

#include "base/ndk/access_rights.h"
#include "client/admin/amounts.h"

namespace rnicd::ctl {
namespace {

constexpr std::array kDurationUnits = {AmountUnit{"ms", 1}, AmountUnit{"s", 1'000}, AmountUnit{"m", 60'000},
                                       AmountUnit{"h", 3'600'000}, AmountUnit{"d", 86'400'000}};
constexpr std::chrono::milliseconds kYear = std::chrono::days(365);

template <typename... Values>
std::string Format(const char* format, Values... values) {
  std::array<char, 64> text;
  const int length = std::snprintf(text.data(), text.size(), format, values...);
  return std::string(text.data(), static_cast<size_t>(length));
}

struct FlagName {
  std::string_view name;
  // The bits that the name sets when parsed.
  uint32_t bits;
  // The bit that alone makes the name appear when printed.
  uint32_t mark;
};

constexpr std::array kFlagNames = {FlagName{"local-write", kMrFlagLocalWrite, kMrFlagLocalWrite},
                                   FlagName{"remote-read", kMrFlagRemoteRead, kMrFlagRemoteRead},
                                   FlagName{"remote-write", kMrFlagRemoteWrite, kMrFlagRemoteWriteBit},
                                   FlagName{"read-sink", kMrFlagReadSink, kMrFlagReadSink}};

std::optional<uint32_t> BitsOf(std::string_view name) {
  for (const FlagName& flag : kFlagNames) {
    if (name == flag.name) {
      return flag.bits;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text, std::chrono::milliseconds max) {
  if (text == "0") {
    return std::chrono::milliseconds(0);
  }
  const std::optional<uint64_t> milliseconds = ParseAmount(text, kDurationUnits);
  if (!milliseconds.has_value() || *milliseconds > static_cast<uint64_t>(max.count())) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(*milliseconds);
}

std::optional<HoldTime> ParseHoldTime(std::string_view text) {
  if (text == "forever") {
    return HoldTime{.forever = true};
  }
  const std::optional<std::chrono::milliseconds> duration = ParseDuration(text, kYear);
  return duration.has_value() ? std::optional(HoldTime{.duration = *duration}) : std::nullopt;
}

std::optional<HostPort> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<uint64_t> port = ParseNumber(text.substr(colon + 1), UINT16_MAX);
  if (host.empty() || !port.has_value()) {
    return std::nullopt;
  }
  return HostPort{.host = std::string(host), .port = static_cast<uint16_t>(*port)};
}

std::string FormatHostPort(const HostPort& host_port) {
  const bool ipv6 = host_port.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host_port.host + "]" : host_port.host) + ":" + std::to_string(host_port.port);
}

std::string FormatBytes(uint64_t bytes) {
  for (auto unit = kSizeUnits.rbegin(); unit->factor > 1; ++unit) {
    if (bytes >= unit->factor) {
      const uint64_t tenths = bytes % unit->factor * 10 / unit->factor;
      return std::to_string(bytes / unit->factor) + (tenths != 0 ? "." + std::to_string(tenths) : "") + " " +
             std::string(unit->suffix);
    }
  }
  return std::to_string(bytes) + " B";
}

std::string FormatLimit(uint64_t bytes) { return bytes == 0 ? "no limit" : FormatBytes(bytes); }

std::string FormatMilliseconds(uint64_t milliseconds) {
  const uint64_t seconds = milliseconds / 1'000;
  if (seconds == 0) {
    return std::to_string(milliseconds) + " ms";
  }
  if (seconds < 60) {
    const uint64_t tenths = milliseconds % 1'000 / 100;
    return std::to_string(seconds) + (tenths != 0 ? "." + std::to_string(tenths) : "") + " s";
  }
  const auto pair = [seconds](uint64_t big, const char* big_name, uint64_t small, const char* small_name) {
    return std::to_string(seconds / big) + big_name + std::to_string(seconds % big / small) + small_name;
  };
  if (seconds < 3'600) {
    return pair(60, " m ", 1, " s");
  }
  return seconds < 86'400 ? pair(3'600, " h ", 60, " m") : pair(86'400, " d ", 3'600, " h");
}

std::string FormatAddress(uint64_t address) { return Format("0x%llx", static_cast<unsigned long long>(address)); }

std::string FormatUid(uint32_t uid) { return uid == UINT32_MAX ? "-" : std::to_string(uid); }

std::string FormatToken(uint32_t memory_token) { return Format("0x%08x", memory_token); }

std::optional<uint32_t> ParseMrFlags(std::string_view names) {
  if (names == "none") {
    return 0;
  }
  uint32_t flags = 0;
  for (;;) {
    const size_t comma = names.find(',');
    const std::optional<uint32_t> bits = BitsOf(names.substr(0, comma));
    if (!bits.has_value()) {
      return std::nullopt;
    }
    flags |= *bits;
    if (comma == std::string_view::npos) {
      return flags;
    }
    names.remove_prefix(comma + 1);
  }
}

std::string MrFlagNames(uint32_t flags) {
  std::string names;
  for (const FlagName& flag : kFlagNames) {
    if ((flags & flag.mark) != 0) {
      names += (names.empty() ? "" : ",") + std::string(flag.name);
    }
  }
  return names.empty() ? "none" : names;
}

}  // namespace rnicd::ctl
