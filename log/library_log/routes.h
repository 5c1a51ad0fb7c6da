#pragma once

#include <string_view>

namespace rnicd::library_log {

enum class Library { kProtobuf, kGrpc };

// One line of a library.
struct LibraryLine {
  Library library = Library::kProtobuf;
  // Source file in the library; only its last component is logged.
  std::string_view file;
  int line = 0;
  std::string_view text;
  // The library aborts the process after this line.
  bool is_last = false;
};

// Hands the line to the LibraryLog, if there is one. Threads: safe.
void WriteLibraryLine(const LibraryLine& line);

// Makes protobuf call WriteLibraryLine from now on, for the rest of the process's life. A program that uses gRPC does
// the same for it.
void RouteProtobufLines();

}  // namespace rnicd::library_log
