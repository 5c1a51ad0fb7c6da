#include <algorithm>
#include <cstring>

#include "tests/simulation/model/card.h"

namespace rnicd::simulation {
namespace {

bool Overlap(const Piece& one, const Piece& other) {
  return one.memory->file == other.memory->file && one.offset < other.offset + other.length &&
         other.offset < one.offset + one.length;
}

// The first `length` bytes of the pieces.
Pieces Head(const Pieces& pieces, uint64_t length) {
  Pieces head;
  for (const Piece& piece : pieces) {
    const uint64_t count = std::min(piece.length, length);
    if (count > 0) {
      head.push_back({.memory = piece.memory, .offset = piece.offset, .length = count});
    }
    length -= count;
  }
  return head;
}

std::vector<std::byte> Gather(const Pieces& pieces) {
  std::vector<std::byte> bytes;
  for (const Piece& piece : pieces) {
    const auto first = piece.memory->file->content.begin() + static_cast<std::ptrdiff_t>(piece.offset);
    bytes.insert(bytes.end(), first, first + static_cast<std::ptrdiff_t>(piece.length));
  }
  return bytes;
}

void Scatter(const std::vector<std::byte>& bytes, const Pieces& pieces) {
  size_t offset = 0;
  for (const Piece& piece : pieces) {
    std::memcpy(piece.memory->file->content.data() + piece.offset, bytes.data() + offset, piece.length);
    offset += piece.length;
  }
}

// True if a target piece overlaps a source piece or another target piece, or if the source is uncertain.
bool IsUncertain(const Pieces& from, const Pieces& to) {
  for (size_t index = 0; index < to.size(); ++index) {
    const auto overlaps = [&](const Piece& other) { return Overlap(to[index], other); };
    if (std::any_of(from.begin(), from.end(), overlaps) ||
        std::any_of(to.begin() + static_cast<std::ptrdiff_t>(index) + 1, to.end(), overlaps)) {
      return true;
    }
  }
  return std::any_of(from.begin(), from.end(), [](const Piece& piece) { return piece.memory->file->uncertain; });
}

}  // namespace

bool PinPayload(const QueuePair& pair, const Request& request, Access access, Pieces& pinned) {
  if (request.inline_data.has_value()) {
    return true;
  }
  for (const Entry& entry : request.entries) {
    if (!entry.host.empty()) {
      pinned.insert(pinned.end(), entry.host.begin(), entry.host.end());
      continue;
    }
    if (entry.length == 0) {
      continue;
    }
    const std::shared_ptr<Target> target = pair.nic().Find(entry.token);
    if (target == nullptr ||
        !target->Pin(pair.domain->number, pair.number, access, entry.address, entry.length, pinned)) {
      return false;
    }
  }
  return true;
}

void CopyPieces(const Pieces& from, const Pieces& to, uint64_t length) {
  const Pieces source = Head(from, length);
  const Pieces sink = Head(to, length);
  if (IsUncertain(source, sink)) {
    for (const Piece& piece : sink) {
      piece.memory->file->uncertain = true;
    }
  }
  Scatter(Gather(source), sink);
}

void CopyBytes(const Request& source, const Pieces& from, const Pieces& to, uint64_t length) {
  if (source.inline_data.has_value()) {
    Scatter(*source.inline_data, Head(to, length));
  } else {
    CopyPieces(from, to, length);
  }
}

}  // namespace rnicd::simulation
