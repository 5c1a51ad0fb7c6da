#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/ndk/access_rights.h"
#include "base/units.h"
#include "tests/simulation/model/memory.h"

namespace rnicd::simulation {

class Key;
class RegionHold;

// The access that a transfer needs to the memory behind a token.
enum class Access : uint8_t { kLocalRead, kLocalWrite, kReadSink, kRemoteRead, kRemoteWrite };

// Memory that a token refers to: a registration, or a window onto one.
struct Target {
  // Number of the protection domain.
  uint64_t domain = 0;
  VirtualAddress base;
  uint64_t length = 0;
  AccessRights rights;
  LocalToken local;
  RemoteToken remote;
  // False once the target is deregistered or invalidated.
  bool alive = true;
  // Registrations only: the bytes from base to base + length, and the pages held by a fast registration.
  Pieces pieces;
  std::shared_ptr<const Backing> backing;
  // Number of windows bound to this registration.
  uint64_t windows = 0;
  // Windows only: the underlying registration, and the number of the only queue pair that may use the window.
  std::shared_ptr<Target> region;
  uint64_t through = 0;
  std::shared_ptr<const RegionHold> hold;
  // Key of a target that can be invalidated by its token; empty otherwise.
  std::weak_ptr<Key> owner;

  // Appends the bytes of [address, address + size); false if `access` through this queue pair is not allowed.
  bool Pin(uint64_t from_domain, uint64_t from_pair, Access access, uint64_t address, uint64_t size,
           Pieces& pinned) const;

 private:
  bool Allows(Access access) const;
  void Append(uint64_t address, uint64_t size, Pieces& pinned) const;
};

// The tokens of one card.
struct Nic {
  // Adds the read sink right if the adapter does not require it: every registration then has it.
  AccessRights Resolve(AccessRights rights) const;
  void Insert(const std::shared_ptr<Target>& target);
  // Removes a dead target.
  void Erase(Target& target);
  std::shared_ptr<Target> Find(RemoteToken token) const;
  std::shared_ptr<Target> Find(LocalToken token) const;

  uint32_t flags = 0;
  // Limit on `keys`; 0 means none.
  uint64_t max_keys = 0;
  // Number of existing keys, active or not.
  uint64_t keys = 0;
  std::map<uint32_t, std::shared_ptr<Target>> local;
  std::map<uint32_t, std::shared_ptr<Target>> remote;
};

// The token pair under which fast registrations or bindings are made and invalidated. Shared by its owner and the
// requests that name it.
class Key : public std::enable_shared_from_this<Key> {
 public:
  // `nic` must outlive the key.
  Key(Nic& nic, uint64_t in_domain, LocalToken local_token, RemoteToken remote_token)
      : domain(in_domain), local(local_token), issued(remote_token), nic_(nic) {
    ++nic_.keys;
  }
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  ~Key() {
    Invalidate();
    --nic_.keys;
  }

  // False if the key is already active or is retired.
  bool Activate(std::shared_ptr<Target> target);
  bool Invalidate();
  void Retire() {
    retired_ = true;
    Invalidate();
  }
  bool active() const { return current_ != nullptr; }
  const std::shared_ptr<Target>& current() const { return current_; }

  const uint64_t domain;
  const LocalToken local;
  // Remote token of the last request accepted for this key.
  RemoteToken issued;

 private:
  Nic& nic_;
  std::shared_ptr<Target> current_;
  bool retired_ = false;
};

}  // namespace rnicd::simulation
