#include "daemon/core/request/request_turns.h"

#include <algorithm>
#include <utility>

namespace rnicd::core {
namespace {

// About half a millisecond on the soft card.
constexpr uint32_t kItemsOfPiece = 256;

}  // namespace

// An item that is slow ends the piece.
RequestTurns::Piece RequestTurns::PieceFrom(const SessionRequests& requests, const ItemPlan& plan, uint32_t first) {
  Piece piece = {.first = first, .end = first};
  while (piece.end < plan.items && piece.end - first < kItemsOfPiece && !requests.IsSlow(piece.bytes)) {
    // A length that will be refused may be any number.
    const uint64_t bytes = plan.bytes_of != nullptr ? plan.bytes_of(piece.end) : 0;
    piece.bytes += std::min(bytes, requests.node().limits.pending_threshold_bytes);
    ++piece.end;
  }
  return piece;
}

bool RequestTurns::IsLong(const SessionRequests& requests, const ItemPlan& plan) {
  const Piece piece = PieceFrom(requests, plan, 0);
  return piece.end < plan.items || requests.IsSlow(piece.bytes);
}

void RequestTurns::Run(SessionRequests& requests, ItemPlan plan) {
  if (IsLong(requests, plan)) {
    Queue(requests, std::move(plan));
    return;
  }
  const auto turns = std::make_shared<RequestTurns>(requests, std::move(plan));
  turns->Do(turns->TakePiece(), absl::OkStatus(), nullptr);
}

void RequestTurns::Queue(SessionRequests& requests, ItemPlan plan) {
  const auto turns = std::make_shared<RequestTurns>(requests, std::move(plan));
  for (uint32_t thread = 0; thread < turns->plan_.threads; ++thread) {
    turns->QueueTurn();
  }
}

RequestTurns::Piece RequestTurns::TakePiece() {
  MutexLock lock(mutex_);
  const Piece piece = PieceFrom(requests_, plan_, next_);
  next_ = piece.end;
  return piece;
}

void RequestTurns::QueueTurn() {
  requests_.RunHeld(requests_.node().workers, held_,
                    [self = shared_from_this()](const absl::Status& start) { self->TakeTurn(start); });
}

// Does one piece, then queues behind the owner's other jobs. After the end of the session the remaining items fail at
// once.
void RequestTurns::TakeTurn(const absl::Status& start) {
  Piece piece = TakePiece();
  for (; !start.ok() && piece.first != piece.end; piece = TakePiece()) {
    Do(piece, start, nullptr);
  }
  if (piece.first != piece.end) {
    Do(piece, start, [this] { QueueTurn(); });
  }
}

void RequestTurns::Do(const Piece& piece, const absl::Status& start, const std::function<void()>& then) {
  const uint32_t count = piece.end - piece.first;
  plan_.run(*held_, piece.first, piece.end, start, [self = shared_from_this(), count, then] {
    if (self->finished_.fetch_add(count) + count == self->plan_.items && self->plan_.done != nullptr) {
      self->plan_.done();
    }
    if (then != nullptr) {
      then();
    }
  });
}

}  // namespace rnicd::core
