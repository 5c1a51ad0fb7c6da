#include "client/kubernetes/resources/preference.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace rnicd::kubernetes {
namespace {

// Ids still available, by node, in ascending order.
using Stock = std::map<int, std::set<std::string_view>>;

class NodeOf {
 public:
  explicit NodeOf(std::span<const Device> devices) {
    for (const Device& device : devices) {
      nodes_.emplace(device.id, device.numa_node);
    }
  }
  int operator()(std::string_view id) const {
    const auto found = nodes_.find(id);
    return found == nodes_.end() ? kNoNumaNode : found->second;
  }

 private:
  std::unordered_map<std::string_view, int> nodes_;
};

// The node to take `need` ids from next: the one with the fewest ids that suffice, or else the one with the most; the
// lower node number among equals.
Stock::iterator Best(Stock& stock, size_t need) {
  const auto better = [need](const Stock::value_type& a, const Stock::value_type& b) {
    const bool a_suffices = a.second.size() >= need;
    const bool b_suffices = b.second.size() >= need;
    if (a_suffices != b_suffices) {
      return a_suffices;
    }
    return a_suffices ? a.second.size() < b.second.size() : a.second.size() > b.second.size();
  };
  return std::min_element(stock.begin(), stock.end(), better);
}

// Moves ids from the stock until `size` are chosen or the stock is empty.
void Take(Stock stock, size_t size, std::vector<std::string>& chosen) {
  while (chosen.size() < size && !stock.empty()) {
    const auto node = Best(stock, size - chosen.size());
    for (const std::string_view id : node->second) {
      if (chosen.size() == size) {
        break;
      }
      chosen.emplace_back(id);
    }
    stock.erase(node);
  }
}

}  // namespace

std::vector<std::string> PreferDevices(std::span<const Device> devices, const PreferenceRequest& request) {
  const NodeOf node_of(devices);
  std::set<std::string_view> seen;
  std::set<int> nodes_in_use;
  std::vector<std::string> chosen;
  for (const std::string& id : request.must_include) {
    if (chosen.size() < request.size && seen.insert(id).second) {
      chosen.push_back(id);
      nodes_in_use.insert(node_of(id));
    }
  }
  // First those that need not be avoided; among them first those of nodes in use already, which cost no further node.
  std::map<std::pair<bool, bool>, Stock> stocks;
  for (const std::string& id : request.available) {
    if (!seen.contains(id)) {
      const int node = node_of(id);
      stocks[{request.avoid.contains(id), !nodes_in_use.contains(node)}][node].insert(id);
    }
  }
  for (auto& [rank, stock] : stocks) {
    Take(std::move(stock), request.size, chosen);
  }
  return chosen;
}

}  // namespace rnicd::kubernetes
