#include <google/protobuf/stubs/logging.h>

#include <string>

#include "log/library_log/routes.h"

namespace rnicd::library_log {
namespace {

void OnLine(google::protobuf::LogLevel level, const char* file, int line, const std::string& text) {
  WriteLibraryLine({.library = Library::kProtobuf,
                    .file = file,
                    .line = line,
                    .text = text,
                    .is_last = level == google::protobuf::LOGLEVEL_FATAL});
}

}  // namespace

void RouteProtobufLines() { google::protobuf::SetLogHandler(&OnLine); }

}  // namespace rnicd::library_log
