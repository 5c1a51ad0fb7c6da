#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tests/simulation/model/objects.h"

namespace rnicd::simulation {

// A read whose bytes are in flight.
struct Landing {
  std::weak_ptr<QueuePair> pair;
  uint64_t serial = 0;
};

// Reference model of how the card executes accepted requests, as simple as possible: one thread, no locks, copies of
// the memory. It fills in what each queue pair must report. A real card promises no order between different queue
// pairs; here they progress in the soft card's order, because the steps of a simulation depend on it.
// Source: README.md of provider/soft; NDK_FN_SEND, _RECEIVE, _READ, _WRITE, _FAST_REGISTER, _INVALIDATE, _BIND.
class Card {
 public:
  explicit Card(bool slow_reads) : slow_reads_(slow_reads) {}

  void Connect(QueuePair& pair, const std::shared_ptr<QueuePair>& peer);
  // Lets requests in flight finish and flushes the rest.
  void Disconnect(QueuePair& pair);
  // Executes requests until none can make progress.
  void Kick(QueuePair& pair);
  void Flush(QueuePair& pair);
  void Land(const Landing& landing);
  // Reports a request that was refused in its place, which fails the queue pair.
  void Refuse(QueuePair& pair, Request request);

  // Reads that have begun and not landed, in the order in which they began, including those of dead queue pairs.
  std::vector<Landing> landings;

 private:
  enum class Door : uint8_t { kOpen, kNotYet, kClosed };

  bool Step(QueuePair& pair);
  std::optional<NtStatus> Begin(QueuePair& pair, Request& request);
  Request* NextToBegin(QueuePair& pair);
  void Settle(QueuePair& pair, Request& request, NtStatus status);
  bool FlushQueues(QueuePair& pair);
  void Report(QueuePair& pair, const Request& request);
  // The peer `lost` has disconnected, or, if `fatal`, has broken the connection; `pair` then fails too. Does nothing
  // unless `lost` is the peer.
  void LoseConnection(QueuePair& pair, const QueuePair& lost, bool fatal);

  // Whether the peer is reachable now.
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

// Resolves the bytes of a request's payload on the side of `pair`; false if one of its tokens does not allow the
// access.
bool PinPayload(const QueuePair& pair, const Request& request, Access access, Pieces& pinned);

// Copies the first `length` bytes of the payload. If a transfer overlaps itself, its target becomes uncertain.
void CopyBytes(const Request& source, const Pieces& from, const Pieces& to, uint64_t length);
void CopyPieces(const Pieces& from, const Pieces& to, uint64_t length);

}  // namespace rnicd::simulation
