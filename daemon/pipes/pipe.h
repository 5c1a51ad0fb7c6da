#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "daemon/pipes/door.h"
#include "daemon/pipes/loop.h"
#include "daemon/pipes/pipe_message.h"
#include "daemon/pipes/security.h"

namespace rnicd::pipes {

struct Operation;

// The daemon's end of one instance of a named pipe: waits for a client, then reads a message, sends the reply, and so
// on. One operation at a time, so that a client that does not read its replies costs one of them.
// Lifetime: shared; a running operation keeps it.
// Threads:  the loop's.
class Pipe : public std::enable_shared_from_this<Pipe> {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void OnConnected(const std::shared_ptr<Pipe>& pipe) = 0;
    // FD_PACKET_MALFORMED for a message with too many bytes. Answered with Send, now or later.
    virtual void OnMessage(const std::shared_ptr<Pipe>& pipe, const absl::StatusOr<std::string_view>& message) = 0;
    // The client has closed the pipe, or the last reply has left. Not called after Close.
    virtual void OnEnd(const std::shared_ptr<Pipe>& pipe) = 0;
  };
  struct Options {
    Door door = Door::kWorkload;
    std::string name;
    // Fails where another process has a pipe of this name already.
    bool is_first = false;
  };

  // Waits for a client at once. `loop` and `events` outlive it. Errors: WindowsStatus of CreateNamedPipe.
  static absl::StatusOr<std::shared_ptr<Pipe>> Listen(Loop& loop, Events& events, const Options& options,
                                                      const SecurityDescriptor& security);
  ~Pipe();

  Door door() const { return door_; }
  int handle() const { return handle_.get(); }

  // Waits for the next message.
  void Read();
  // Sends a reply, then waits for the next message; or ends after the `last` one.
  void Send(std::string reply, bool last);
  // What was sent stays for the client to read.
  void Close();

 private:
  Pipe(Loop& loop, Events& events, Door door, UniqueFd handle);
  void WaitForClient();
  void OnRead(uint32_t bytes, uint32_t error);
  void OnSent(bool last, uint32_t error);
  void End();
  // After a call that begins an operation: `error` is 0 when it has succeeded.
  void Begun(uint32_t error);
  template <typename Next>
  Operation* Prepare(Next next);

  Loop& loop_;
  Events& events_;
  const Door door_;
  UniqueFd handle_;
  bool closed_ = false;
  const std::unique_ptr<Operation> operation_;
  // Itself, while an operation runs.
  std::shared_ptr<Pipe> kept_;
  std::array<char, kRequestBytesMax> request_;
  std::string reply_;
};

}  // namespace rnicd::pipes
