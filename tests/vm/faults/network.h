#pragma once

#include <string>
#include <vector>

namespace rnicd::test {

// The two ends of the link that tests/vm/network.sh creates: rxa on va, rxb on vb.
inline constexpr char kNearAddress[] = "10.98.0.1";

// A change of the network. Undo, or the destructor, reverts it, and returns when both cards are up again and have their
// addresses. Every failure is a test failure.
class NetworkChange {
 public:
  using Commands = std::vector<std::string>;

  NetworkChange(const Commands& change, Commands undo);
  ~NetworkChange() { Undo(); }
  NetworkChange(const NetworkChange&) = delete;
  NetworkChange& operator=(const NetworkChange&) = delete;

  void Undo();

 private:
  Commands undo_;
};

// Switches off the end with this name ("va", "vb"); the other end loses its carrier.
struct LinkDown : NetworkChange {
  explicit LinkDown(const std::string& end);
};
// Applies a netem setting to outgoing packets of this end: "loss 100%", "delay 5ms".
struct Disturbance : NetworkChange {
  Disturbance(const std::string& end, const std::string& what);
};
// Removes the near end's IPv4 address.
struct AddressGone : NetworkChange {
  AddressGone();
};
// Removes the near end's address and adds it again after another one has taken its slot.
struct AddressMoved : NetworkChange {
  AddressMoved();
};

// GID table slot of the near card's IPv4 address; -1 if none.
int SlotOfNearAddress();

}  // namespace rnicd::test
