#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rnicd::rpc {

// Takes the frames RST_STREAM, WINDOW_UPDATE and PRIORITY for streams that a client has not opened out of the bytes
// that it sends. RFC 9113 lets a server end the connection for them, and nghttp2 does, but gRPC's core sends some: for
// a call that is given up after it has got its stream's number and before its headers are written. Everything else
// passes as it is, with its errors: nothing inside of a header block and no frame of a wrong size is taken out, nor one
// for a stream of the server or for the connection.
// Threads: one at a time.
class FrameFilter {
 public:
  // Takes bytes from the front of `bytes`, and returns those of them that pass, which may be none: a part of `bytes`,
  // or valid until the next call. To be called until `bytes` is empty.
  std::string_view Next(std::string_view& bytes);
  // Frames that were taken out since the last call.
  uint32_t TakeDropped();

 private:
  static constexpr size_t kHeadBytes = 9;

  // Begins with the frame that has this head. False when the frame is taken out.
  bool Begin(const char* head);
  // Takes the head of a frame in parts. Returns it once it is whole, if it passes.
  std::string_view GatherHead(std::string_view& bytes);

  // The first part of a head whose rest has not arrived.
  std::array<char, kHeadBytes> head_{};
  size_t head_bytes_ = 0;
  // Bytes left of the frame, at first of the client's preface.
  size_t left_ = 24;
  bool dropping_ = false;
  // True when the next frame passes in any case: the first one, which has to be SETTINGS, and inside of a header block.
  bool must_pass_ = true;
  uint32_t highest_opened_ = 0;
  uint32_t dropped_ = 0;
};

}  // namespace rnicd::rpc
