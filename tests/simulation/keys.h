#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/access_rights.h"
#include "base/units.h"
#include "tests/simulation/memory.h"

namespace rnicd::simulation {

class Key;
class RegionHold;

// What a transfer wants of the memory behind a token.
enum class Access : uint8_t { kLocalRead, kLocalWrite, kReadSink, kRemoteRead, kRemoteWrite };

// Memory that a token leads to: a registration, or a window onto one.
struct Target {
  // The protection domain's number.
  uint64_t domain = 0;
  VirtualAddress base;
  uint64_t length = 0;
  AccessRights rights;
  LocalToken local;
  RemoteToken remote;
  // False once it is deregistered or invalidated.
  bool alive = true;
  // Of a registration: the bytes from base to base + length, and what a fast one holds.
  Pieces pieces;
  std::shared_ptr<const Backing> backing;
  // Windows that are bound to it now.
  uint64_t windows = 0;
  // Of a window: the registration it looks onto, and the number of the only queue pair it works through.
  std::shared_ptr<Target> region;
  uint64_t through = 0;
  std::shared_ptr<const RegionHold> hold;
  // Of what can be invalidated by its token.
  std::weak_ptr<Key> owner;

  // Appends the bytes of [address, address + size) when `access` through that queue pair is allowed.
  bool Pin(uint64_t from_domain, uint64_t from_pair, Access access, uint64_t address, uint64_t size,
           Pieces& pinned) const;

 private:
  bool Allows(Access access) const;
  void Append(uint64_t address, uint64_t size, Pieces& pinned) const;
};

// The tokens of one card.
struct Nic {
  // Where the adapter asks for no read sink right every registration has it.
  AccessRights Resolve(AccessRights rights) const;
  void Insert(const std::shared_ptr<Target>& target);
  // The target is dead.
  void Erase(Target& target);
  std::shared_ptr<Target> Find(RemoteToken token) const;
  std::shared_ptr<Target> Find(LocalToken token) const;

  uint32_t flags = 0;
  // 0 means no limit.
  uint64_t max_keys = 0;
  // Keys that exist, whether they lead anywhere or not.
  uint64_t keys = 0;
  std::map<uint32_t, std::shared_ptr<Target>> local;
  std::map<uint32_t, std::shared_ptr<Target>> remote;
};

// What fast registrations or bindings come and go under. Shared by its owner and the requests that name it.
class Key : public std::enable_shared_from_this<Key> {
 public:
  // `nic` outlives the key.
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

  // False when it leads somewhere already or is retired.
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
  // That of the last request that was accepted for it.
  RemoteToken issued;

 private:
  Nic& nic_;
  std::shared_ptr<Target> current_;
  bool retired_ = false;
};

}  // namespace rnicd::simulation
