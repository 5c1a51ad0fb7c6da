#include "provider/soft/memory/soft_target.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace rnicd::provider {
namespace {

// A position in a list of pieces.
struct Cursor {
  const Pieces& pieces;
  size_t index = 0;
  size_t offset = 0;

  // The rest of the current piece; skips empty pieces.
  std::span<std::byte> Rest() {
    while (offset == pieces[index].size()) {
      ++index;
      offset = 0;
    }
    return pieces[index].subspan(offset);
  }
};

std::byte& At(const Pieces& pieces, uint64_t offset) {
  size_t index = 0;
  while (offset >= pieces[index].size()) {
    offset -= pieces[index].size();
    ++index;
  }
  return pieces[index][offset];
}

void Copy(Cursor& from, Cursor& to, uint64_t length) {
  while (length > 0) {
    const std::span<std::byte> source = from.Rest();
    const std::span<std::byte> target = to.Rest();
    const auto count = std::min<uint64_t>({source.size(), target.size(), length});
    // memmove, because a peer may name the same memory on both sides.
    std::memmove(target.data(), source.data(), count);
    from.offset += count;
    to.offset += count;
    length -= count;
  }
}

}  // namespace

Pieces Slice(const Pieces& pieces, uint64_t offset, uint64_t length) {
  Pieces slice;
  for (const std::span<std::byte> piece : pieces) {
    const uint64_t skipped = std::min<uint64_t>(offset, piece.size());
    const uint64_t taken = std::min<uint64_t>(length, piece.size() - skipped);
    if (taken > 0) {
      slice.push_back(piece.subspan(skipped, taken));
    }
    offset -= skipped;
    length -= taken;
  }
  return slice;
}

void CopyInOrder(const Pieces& from, const Pieces& to, uint64_t length) {
  if (length == 0) {
    return;
  }
  // Read the last byte first: the rest of the copy may overwrite it.
  const auto last = static_cast<unsigned char>(At(from, length - 1));
  Cursor source{from};
  Cursor target{to};
  Copy(source, target, length - 1);
  std::atomic_ref(reinterpret_cast<unsigned char&>(At(to, length - 1))).store(last, std::memory_order_release);
}

}  // namespace rnicd::provider
