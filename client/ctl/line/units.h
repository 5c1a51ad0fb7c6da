#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rnicd::ctl {

// How long to keep memory: a duration, or until a signal arrives.
struct HoldTime {
  std::chrono::milliseconds duration{0};
  bool forever = false;
  friend bool operator==(const HoldTime&, const HoldTime&) = default;
};

// Parses "500ms", "2s", "5m", "1h", "7d", "0". Empty for any other text and above `max`.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text, std::chrono::milliseconds max);

// Parses a duration or "forever". Empty for any other text and above a year.
std::optional<HoldTime> ParseHoldTime(std::string_view text);

// Where a TCP server listens, or is found.
struct HostPort {
  // A name or an address, without brackets.
  std::string host;
  uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// Parses "name:7471", "10.0.0.7:7471", "[::]:7471". Empty for any other text.
std::optional<HostPort> ParseHostPort(std::string_view text);
// The same text.
std::string FormatHostPort(const HostPort& host_port);

// "64 MiB", "1.5 GiB", "100 B": at most one decimal, rounded down.
std::string FormatBytes(uint64_t bytes);
// "64 MiB", or "no limit" for 0.
std::string FormatLimit(uint64_t bytes);
// "850 ms", "2.5 s", "5 m 3 s", "2 h 10 m", "3 d 4 h".
std::string FormatMilliseconds(uint64_t milliseconds);
// "0x7f0012340000".
std::string FormatAddress(uint64_t address);
// "1000", or "-" for the number that stands for none on Windows.
std::string FormatUid(uint32_t uid);
// "0x0000ab12": tokens are 32 bits wide.
std::string FormatToken(uint32_t memory_token);

// Converts "local-write,remote-read" to kMrFlag bits; "none" is 0. Empty for an unknown name.
std::optional<uint32_t> ParseMrFlags(std::string_view names);
// The reverse; "none" for 0. remote-write stands for both of its bits.
std::string MrFlagNames(uint32_t flags);

}  // namespace rnicd::ctl
