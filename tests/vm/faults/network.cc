#include "tests/vm/faults/network.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "tests/support/process/wait.h"
#include "tests/vm/faults/tools.h"

namespace rnicd::test {
namespace {

constexpr int kGidSlots = 16;
// 10.98.0.1 as the kernel writes it into the GID table.
constexpr char kNearGid[] = "0000:0000:0000:0000:0000:ffff:0a62:0001";

void Execute(const NetworkChange::Commands& commands) {
  for (const std::string& command : commands) {
    std::istringstream words(command);
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) {
      arguments.push_back(word);
    }
    MustRunTool(arguments);
  }
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string Gid(const std::string& card, int slot) {
  return FirstLine("/sys/class/infiniband/" + card + "/ports/1/gids/" + std::to_string(slot));
}

bool IsReady(const std::string& card) {
  bool has_link_local = false;
  bool has_ipv4 = false;
  for (int slot = 0; slot < kGidSlots; ++slot) {
    const std::string gid = Gid(card, slot);
    has_link_local = has_link_local || gid.starts_with("fe80:");
    has_ipv4 = has_ipv4 || gid.find(":ffff:0a62:") != std::string::npos;
  }
  const std::string state = FirstLine("/sys/class/infiniband/" + card + "/ports/1/state");
  return has_link_local && has_ipv4 && state.ends_with("ACTIVE");
}

// A card's port is active as soon as there is a carrier; the netdev drops packets until the kernel's link watch has
// seen the carrier too.
bool Sends(const std::string& end) { return FirstLine("/sys/class/net/" + end + "/operstate") == "up"; }

bool NetworkIsReady() { return IsReady("rxa") && IsReady("rxb") && Sends("va") && Sends("vb"); }

// The kernel removes both with the link, and the route also with the address. tests/vm/network.sh explains their
// purpose.
std::string RouteOf(const std::string& end) {
  return end == "va" ? "ip route replace 10.98.0.2 dev va table 201" : "ip route replace 10.98.0.1 dev vb table 202";
}
std::string NeighbourOf(const std::string& end) {
  return end == "va" ? "ip neighbour replace 10.98.0.2 lladdr 02:00:00:00:00:0b dev va nud permanent"
                     : "ip neighbour replace 10.98.0.1 lladdr 02:00:00:00:00:0a dev vb nud permanent";
}

}  // namespace

NetworkChange::NetworkChange(const Commands& change, Commands undo) : undo_(std::move(undo)) { Execute(change); }

void NetworkChange::Undo() {
  if (undo_.empty()) {
    return;
  }
  Execute(std::exchange(undo_, {}));
  EXPECT_TRUE(Eventually(NetworkIsReady)) << "the cards do not come back";
}

LinkDown::LinkDown(const std::string& end)
    : NetworkChange({"ip link set " + end + " down"}, {"ip link set " + end + " up", RouteOf(end), NeighbourOf(end)}) {}

Disturbance::Disturbance(const std::string& end, const std::string& what)
    : NetworkChange({"tc qdisc add dev " + end + " root netem " + what}, {"tc qdisc del dev " + end + " root"}) {}

AddressGone::AddressGone()
    : NetworkChange({"ip address del 10.98.0.1/24 dev va"}, {"ip address add 10.98.0.1/24 dev va", RouteOf("va")}) {}

AddressMoved::AddressMoved()
    : NetworkChange({"ip address del 10.98.0.1/24 dev va", "ip address add 10.98.0.77/24 dev va",
                     "ip address add 10.98.0.1/24 dev va", RouteOf("va")},
                    // Removing an address also removes every later address of its network.
                    {"ip address flush dev va to 10.98.0.0/24", "ip address add 10.98.0.1/24 dev va", RouteOf("va")}) {
  EXPECT_TRUE(Eventually([] { return SlotOfNearAddress() >= 0 && IsReady("rxa"); }))
      << "the address does not come back";
}

int SlotOfNearAddress() {
  for (int slot = 0; slot < kGidSlots; ++slot) {
    if (Gid("rxa", slot) == kNearGid) {
      return slot;
    }
  }
  return -1;
}

}  // namespace rnicd::test
