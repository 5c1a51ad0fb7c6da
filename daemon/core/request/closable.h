#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/status.h"

namespace rnicd::core {

// An object with NDK's close: it never fails, but completes only when every successor is closed and every request on
// the object is complete. Each of those is a Hold.
// Lifetime: shared; a Hold keeps its object in memory.
// Threads:  safe. The completion runs on the thread that releases the last Hold, without a lock held.
// Source:   NDK_FN_CLOSE_OBJECT; Object Lifetime Requirements.
class Closable : public std::enable_shared_from_this<Closable> {
 public:
  enum class CloseResult : uint8_t {
    // Closed before the call returned; the completion is never called.
    kClosed,
    // The completion will be called, once.
    kPending,
  };

  // Keeps an object from closing.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept : object_(std::move(other.object_)) {}
    Hold& operator=(Hold&& other) noexcept {
      Release();
      object_ = std::move(other.object_);
      return *this;
    }
    ~Hold() { Release(); }
    void Release();

   private:
    friend class Closable;
    explicit Hold(std::shared_ptr<Closable> object) : object_(std::move(object)) {}
    std::shared_ptr<Closable> object_;
  };

  virtual ~Closable() = default;

  // Errors: OBJECT_CLOSING once Close was called.
  absl::StatusOr<Hold> Acquire();
  // Errors: OBJECT_CLOSING when Close was called before.
  absl::StatusOr<CloseResult> Close(std::function<void()> on_closed);
  bool closing() const;

 protected:
  // `id_field`: the request field that names such an object, for refusals; must have static storage duration.
  explicit Closable(const char* id_field = "") : id_field_(id_field) {}

  // Releases the object's resources; called once, when the object is closing and no hold is left.
  virtual void Finalize() = 0;
  // Releases the holds this object has on its parents; called after its own completion, so that a parent's close
  // completes after its child's.
  virtual void ReleaseParents() {}

 private:
  void Drop();

  const char* const id_field_;
  mutable Mutex mutex_;
  uint64_t holds_ RNICD_GUARDED_BY(mutex_) = 0;
  bool closing_ RNICD_GUARDED_BY(mutex_) = false;
  std::function<void()> on_closed_ RNICD_GUARDED_BY(mutex_);
};

// An object that its owner keeps from closing: its child, or what uses it.
template <typename T>
class Kept {
 public:
  // Errors: OBJECT_CLOSING.
  static absl::StatusOr<Kept> Of(std::shared_ptr<T> object) {
    RNICD_ASSIGN_OR_RETURN(Closable::Hold hold, object->Acquire());
    return Kept(std::move(object), std::move(hold));
  }

  T* operator->() const { return object_.get(); }
  T& operator*() const { return *object_; }
  const std::shared_ptr<T>& shared() const { return object_; }
  // The object stays in memory, and may close.
  void Release() { hold_.Release(); }

 private:
  Kept(std::shared_ptr<T> object, Closable::Hold hold) : object_(std::move(object)), hold_(std::move(hold)) {}

  std::shared_ptr<T> object_;
  Closable::Hold hold_;
};

}  // namespace rnicd::core
