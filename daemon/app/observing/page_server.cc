#include "daemon/app/observing/page_server.h"

#include <utility>

#include "base/status.h"
#include "base/system/socket_io.h"

namespace rnicd::app {

void PageServer::Inherit(UniqueSocket listener) {
  MutexLock lock(mutex_);
  listener_ = std::move(listener);
}

absl::Status PageServer::Start() {
  if (configured_.empty()) {
    return absl::OkStatus();
  }
  MutexLock lock(mutex_);
  RNICD_ASSIGN_OR_RETURN(pages_, Pages::Start(configured_, parts_(), std::move(listener_)));
  return absl::OkStatus();
}

void PageServer::Stop() {
  // Destroyed without the lock, because that waits for requests, which may ask for the address.
  std::unique_ptr<Pages> pages;
  MutexLock lock(mutex_);
  pages.swap(pages_);
}

UniqueSocket PageServer::Lend() {
  std::unique_ptr<Pages> pages;
  MutexLock lock(mutex_);
  if (pages_ == nullptr) {
    return {};
  }
  listener_ = pages_->TakeListener();
  pages.swap(pages_);
  return CopySocket(listener_);
}

absl::Status PageServer::TakeBack() {
  {
    MutexLock lock(mutex_);
    if (!listener_.valid()) {
      return absl::OkStatus();
    }
  }
  return Start();
}

std::string PageServer::address() const {
  MutexLock lock(mutex_);
  return pages_ != nullptr ? pages_->address() : "";
}

}  // namespace rnicd::app
