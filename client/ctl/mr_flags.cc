#include "client/ctl/mr_flags.h"

#include <array>

#include "base/access_rights.h"

namespace rnicd::ctl {
namespace {

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
