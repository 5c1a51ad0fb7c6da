#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tests/simulation/objects.h"

namespace rnicd::simulation {

// A read whose bytes are under way.
struct Landing {
  std::weak_ptr<QueuePair> pair;
  uint64_t serial = 0;
};

// What the card must do with the requests that it accepted, in the plainest way: one thread, no locks, copies of the
// memory. It fills in what each queue pair must report. Between different queue pairs a real card promises no order;
// here they go on in the soft card's order, because the steps of a simulation depend on it.
// Source: README.md of provider/soft; NDK_FN_SEND, _RECEIVE, _READ, _WRITE, _FAST_REGISTER, _INVALIDATE, _BIND.
class Card {
 public:
  explicit Card(bool slow_reads) : slow_reads_(slow_reads) {}

  void Connect(QueuePair& pair, const std::shared_ptr<QueuePair>& peer);
  // What is under way arrives, the rest is flushed.
  void Disconnect(QueuePair& pair);
  // Goes on with whatever can go on.
  void Ring(QueuePair& pair);
  void Flush(QueuePair& pair);
  void Land(const Landing& landing);

  // Reads that began and have not landed, in the order in which they began; those of dead queue pairs too.
  std::vector<Landing> landings;

 private:
  enum class Door : uint8_t { kOpen, kNotYet, kClosed };

  bool Step(QueuePair& pair);
  std::optional<NtStatus> Begin(QueuePair& pair, Request& request);
  Request* NextToBegin(QueuePair& pair);
  void Settle(QueuePair& pair, Request& request, NtStatus status);
  bool FlushQueues(QueuePair& pair);
  void Report(QueuePair& pair, const Request& request);
  // The peer `lost` is gone, or did what ends the connection; then `pair` fails too. Nobody but the peer can do either.
  void LoseConnection(QueuePair& pair, const QueuePair& lost, bool fatal);

  // Whether the peer can be reached now.
  Door Knock(QueuePair& pair);
  std::optional<NtStatus> Execute(QueuePair& pair, Request& request);
  std::optional<NtStatus> Send(QueuePair& pair, QueuePair& host, Request& request);
  NtStatus Receive(QueuePair& host, const Request& send, const Request& receive);
  NtStatus Write(QueuePair& pair, QueuePair& host, const Request& request);
  NtStatus Read(QueuePair& pair, QueuePair& host, const Request& request);
  bool FastRegister(QueuePair& pair, Request& request);
  bool Bind(QueuePair& pair, Request& request);

  const bool slow_reads_;
};

// The bytes of a request's payload on the side of `pair`; false when a token of it does not allow the access.
bool PinPayload(const QueuePair& pair, const Request& request, Access access, Pieces& pinned);

// Copies the first `length` bytes of the payload. Where a transfer overlaps itself its target becomes uncertain.
void CopyBytes(const Request& source, const Pieces& from, const Pieces& to, uint64_t length);
void CopyPieces(const Pieces& from, const Pieces& to, uint64_t length);

}  // namespace rnicd::simulation
