#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace rnicd::rpc {

// What one connection may cost before anybody knows what its calls want.
struct Limits {
  // Calls at a time, half-sent ones too.
  uint32_t calls_max = 1024;
  // Bytes of a request's message.
  uint32_t message_bytes_max = 4 << 20;
  // Header fields of a request, and their bytes as SETTINGS_MAX_HEADER_LIST_SIZE counts them: name, value and 32.
  uint32_t header_fields_max = 64;
  uint32_t header_bytes_max = 16 << 10;
  // Bytes of responses that wait for a client that does not read; above it none of its calls begins.
  uint64_t unread_bytes_max = 1 << 20;
  // Frames without a call's data that a client may send for each response: pings, settings, the connection's window
  // updates, refused calls.
  uint32_t idle_frames_max = 4096;
  // Frames for calls that are given up, for each response: resets, window updates, and frames for streams that never
  // opened. They cost less than a call, and a client whose deadlines are too short sends thousands before it gets a
  // response.
  uint32_t given_up_max = 65536;
  // Budgets in bytes: for requests and responses that are on the way, and for open calls.
  uint64_t connection_bytes = 32 << 20;
  uint64_t owner_bytes = 64 << 20;
  uint64_t daemon_bytes = 512 << 20;
  // Time to begin: the client's preface and its acknowledgement of our SETTINGS.
  std::chrono::milliseconds greeting_timeout{10000};
  // Time for a request to arrive whole.
  std::chrono::milliseconds request_timeout{10000};
  // Time for the rest of a request that has its response already; then the stream is reset.
  std::chrono::milliseconds rest_timeout{100};
  // Time without any progress of responses that wait for the client. One that reads, however slowly, makes some.
  std::chrono::milliseconds unread_timeout{60000};
  // Time for a connection that the daemon closes to deliver its last responses, above all the event with the cause of
  // the session's end.
  std::chrono::milliseconds last_words{250};
};

}  // namespace rnicd::rpc
