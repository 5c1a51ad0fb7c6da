#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace rnicd::provider {

// A first-in, first-out queue in one block of memory, which doubles when it is full and is kept until the end.
// Elements are default-constructible, and are assigned, not destroyed, when they leave.
template <typename Element>
class RingBuffer {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // The oldest element is number 0.
  Element& operator[](size_t index) { return elements_[(first_ + index) & (capacity_ - 1)]; }
  const Element& operator[](size_t index) const { return elements_[(first_ + index) & (capacity_ - 1)]; }

  void PushBack(Element element) {
    if (size_ == capacity_) {
      Grow();
    }
    (*this)[size_++] = std::move(element);
  }
  Element PopFront() {
    Element element = std::move(elements_[first_]);
    first_ = (first_ + 1) & (capacity_ - 1);
    --size_;
    return element;
  }
  Element PopBack() { return std::move((*this)[--size_]); }

 private:
  static constexpr size_t kFirstCapacity = 16;

  void Grow() {
    const size_t capacity = capacity_ == 0 ? kFirstCapacity : 2 * capacity_;
    auto elements = std::make_unique<Element[]>(capacity);
    for (size_t index = 0; index < size_; ++index) {
      elements[index] = std::move((*this)[index]);
    }
    elements_ = std::move(elements);
    capacity_ = capacity;
    first_ = 0;
  }

  std::unique_ptr<Element[]> elements_;
  // A power of 2, or 0 before the first element.
  size_t capacity_ = 0;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace rnicd::provider
