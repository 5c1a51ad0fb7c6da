#pragma once

#include <utility>

namespace rnicd::provider {

// A counted reference to an object of the card.
// Threads: as std::shared_ptr.
template <typename Interface>
class ComPtr {
 public:
  ComPtr() = default;
  // Takes over a reference.
  explicit ComPtr(Interface* owned) : object_(owned) {}
  ComPtr(const ComPtr& other) : object_(other.object_) { Hold(); }
  ComPtr(ComPtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  // A reference to an object of a class that derives from the interface.
  template <typename Derived>
  // NOLINTNEXTLINE(google-explicit-constructor): as with std::shared_ptr.
  ComPtr(const ComPtr<Derived>& other) : object_(other.get()) {
    Hold();
  }
  ComPtr& operator=(ComPtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~ComPtr() {
    if (object_ != nullptr) {
      object_->Release();
    }
  }

  Interface* get() const { return object_; }
  Interface* operator->() const { return object_; }
  Interface& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  // For a method that creates the object; nothing may be held.
  void** out() { return reinterpret_cast<void**>(&object_); }

 private:
  void Hold() const {
    if (object_ != nullptr) {
      object_->AddRef();
    }
  }

  Interface* object_ = nullptr;
};

}  // namespace rnicd::provider
