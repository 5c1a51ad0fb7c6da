#include "daemon/core/tenant/page_tree.h"

#include <algorithm>
#include <utility>

namespace rnicd::core {

struct PageTree::Node {
  // Pages of this node that are counted by it or below it.
  uint64_t live = 0;
  // How often each child was counted as a whole.
  std::array<uint32_t, kChildren> times{};
  // The children that have parts with other counts; made when the first of them does. A page has none.
  std::unique_ptr<Below> below;
};

PageTree::PageTree() = default;
PageTree::~PageTree() = default;

uint64_t PageTree::Raise(uint64_t first, uint64_t count) {
  GrowBeyond(first + count);
  return Change(*root_, shift_, first, first + count, 1);
}

uint64_t PageTree::Lower(uint64_t first, uint64_t count) {
  const uint64_t gone = Change(*root_, shift_, first, first + count, -1);
  if (root_->live == 0) {
    root_.reset();
    shift_ = 0;
  }
  return gone;
}

void PageTree::GrowBeyond(uint64_t end) {
  if (root_ == nullptr) {
    root_ = std::make_unique<Node>();
  }
  while (end >> (shift_ + kBits) > 0) {
    shift_ += kBits;
    if (root_->live > 0) {
      auto above = std::make_unique<Node>();
      above->live = root_->live;
      above->below = std::make_unique<Below>();
      (*above->below)[0] = std::exchange(root_, nullptr);
      root_ = std::move(above);
    }
  }
}

uint64_t PageTree::Change(Node& node, unsigned shift, uint64_t first, uint64_t end, int step) {
  uint64_t changed = 0;
  for (uint64_t at = first; at < end;) {
    const uint64_t index = at >> shift;
    const uint64_t begin = index << shift;
    const uint64_t stop = std::min(begin + (uint64_t{1} << shift), end);
    changed += stop - at == uint64_t{1} << shift ? ChangeWhole(node, shift, index, step)
                                                 : ChangePart(node, shift, index, at - begin, stop - begin, step);
    at = stop;
  }
  node.live += step > 0 ? changed : -changed;
  return changed;
}

uint64_t PageTree::ChangeWhole(Node& node, unsigned shift, uint64_t index, int step) {
  uint32_t& times = node.times[index];
  const uint32_t before = times;
  times += static_cast<uint32_t>(step);
  if (before != 0 && times != 0) {
    return 0;
  }
  const Node* const child = node.below == nullptr ? nullptr : (*node.below)[index].get();
  return (uint64_t{1} << shift) - (child == nullptr ? 0 : child->live);
}

uint64_t PageTree::ChangePart(Node& node, unsigned shift, uint64_t index, uint64_t first, uint64_t end, int step) {
  if (node.below == nullptr) {
    node.below = std::make_unique<Below>();
  }
  std::unique_ptr<Node>& child = (*node.below)[index];
  if (child == nullptr) {
    child = std::make_unique<Node>();
  }
  const uint64_t changed = Change(*child, shift - kBits, first, end, step);
  if (child->live == 0) {
    child.reset();
  }
  return node.times[index] > 0 ? 0 : changed;
}

}  // namespace rnicd::core
