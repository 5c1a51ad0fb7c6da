#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string_view>

namespace rnicd::fuzz {

// Ends the program, so that libFuzzer keeps the input.
[[noreturn]] inline void Fail(std::string_view what,
                              const std::source_location& where = std::source_location::current()) {
  std::fprintf(stderr, "%s:%u: does not hold: %.*s\n", where.file_name(), static_cast<unsigned>(where.line()),
               static_cast<int>(what.size()), what.data());
  std::abort();
}

// Fails unless `holds`, which must be true for every input.
inline void Check(bool holds, std::string_view what,
                  const std::source_location& where = std::source_location::current()) {
  if (!holds) {
    Fail(what, where);
  }
}

}  // namespace rnicd::fuzz
