#pragma once

#include <string>
#include <vector>

namespace rnicd::test {

// The two ends of the wire, as tests/vm/network.sh makes them: rxa on va, rxb on vb.
inline constexpr char kNearAddress[] = "10.98.0.1";

// A change of the network that is taken back when this goes, at the latest; returns from that when both cards are up
// again and have their addresses. Everything here is a test failure when it does not work.
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

// The end of that name ("va", "vb") is switched off, which takes the carrier from the other.
struct LinkDown : NetworkChange {
  explicit LinkDown(const std::string& end);
};
// What leaves that end is treated so: "loss 100%", "delay 5ms".
struct Disturbance : NetworkChange {
  Disturbance(const std::string& end, const std::string& what);
};
// The near end has lost its IPv4 address.
struct AddressGone : NetworkChange {
  AddressGone();
};
// The near end's address was taken away and given back when another one stood in its place.
struct AddressMoved : NetworkChange {
  AddressMoved();
};

// Where in the table of GIDs of the near card its IPv4 address stands; -1: nowhere.
int SlotOfNearAddress();

}  // namespace rnicd::test
