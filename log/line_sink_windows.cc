#include <io.h>
#include <windows.h>

#include <cstdio>
#include <memory>
#include <string_view>
#include <type_traits>

#include "log/line_sink.h"

namespace rnicd::log {
namespace {

constexpr DWORD kEventId = 1000;

struct Deregistering {
  void operator()(HANDLE source) const { DeregisterEventSource(source); }
};
using EventSource = std::shared_ptr<std::remove_pointer_t<HANDLE>>;

void WriteEvent(HANDLE source, const Line& line) {
  const WORD type = line.level == Level::kError ? EVENTLOG_ERROR_TYPE : EVENTLOG_WARNING_TYPE;
  const char* text = line.text.c_str();
  ReportEventA(source, type, 0, kEventId, nullptr, 1, 0, &text, nullptr);
}

// A service has no stderr, and loses nothing there. Asked for each time, because the C library may get another one.
bool WriteToStderr(std::string_view text) {
  const int descriptor = _fileno(stderr);
  const HANDLE file = descriptor < 0 ? INVALID_HANDLE_VALUE : reinterpret_cast<HANDLE>(_get_osfhandle(descriptor));
  while (file != INVALID_HANDLE_VALUE && !text.empty()) {
    DWORD count = 0;
    if (WriteFile(file, text.data(), static_cast<DWORD>(text.size()), &count, nullptr) == 0 || count == 0) {
      return false;
    }
    text.remove_prefix(count);
  }
  return true;
}

}  // namespace

std::function<bool(const Line&)> LineSink(bool event_log) {
  const EventSource source(event_log ? RegisterEventSourceA(nullptr, "rnicd") : nullptr, Deregistering());
  return [source](const Line& line) {
    if (source != nullptr && line.level >= Level::kWarning) {
      WriteEvent(source.get(), line);
    }
    return WriteToStderr(line.text);
  };
}

}  // namespace rnicd::log
