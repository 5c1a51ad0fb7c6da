#pragma once

#include <array>
#include <cstdint>
#include <memory>

namespace rnicd::core {

// How often each page of one file is counted. A run of pages costs as much as its two ends, however long it is: where a
// run covers a whole subtree, only the subtree is counted. Memory grows with the ends of runs, and is at most 4.4 bytes
// a page.
// Threads: none of its own; the caller holds a lock.
class PageTree {
 public:
  PageTree();
  ~PageTree();
  PageTree(const PageTree&) = delete;
  PageTree& operator=(const PageTree&) = delete;

  // Counts these pages once more; returns how many of them were not counted. Their end is below 2^52.
  uint64_t Raise(uint64_t first, uint64_t count);
  // Undoes one Raise of exactly this run; returns how many of its pages are no longer counted.
  uint64_t Lower(uint64_t first, uint64_t count);

 private:
  static constexpr unsigned kBits = 7;
  static constexpr uint64_t kChildren = 1U << kBits;
  struct Node;
  using Below = std::array<std::unique_ptr<Node>, kChildren>;

  // Number of pages that change between counted and not counted in a node whose children have 2^`shift` pages each,
  // when the pages from `first` to `end`, relative to the node, are counted once more or (`step` is -1) once less.
  static uint64_t Change(Node& node, unsigned shift, uint64_t first, uint64_t end, int step);
  static uint64_t ChangeWhole(Node& node, unsigned shift, uint64_t index, int step);
  static uint64_t ChangePart(Node& node, unsigned shift, uint64_t index, uint64_t first, uint64_t end, int step);

  // Makes the root cover all pages before `end` and one more. A run thus never covers the root, and the same run is
  // divided in the same way after the root has grown.
  void GrowBeyond(uint64_t end);

  std::unique_ptr<Node> root_;
  // Each of the root's children has 2^shift_ pages.
  unsigned shift_ = 0;
};

}  // namespace rnicd::core
