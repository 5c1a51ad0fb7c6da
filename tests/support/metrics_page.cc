#include "tests/support/metrics_page.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <sstream>

#include <gtest/gtest.h>

#include "base/files/unique_fd.h"

namespace rnicd::test {
namespace {

UniqueFd ConnectTcp(const std::string& address) {
  const size_t colon = address.rfind(':');
  sockaddr_in target = {};
  target.sin_family = AF_INET;
  target.sin_port = htons(static_cast<uint16_t>(std::atoi(address.substr(colon + 1).c_str())));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &target.sin_addr);
  UniqueFd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval timeout = {.tv_sec = 10, .tv_usec = 0};
  setsockopt(socket_fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  if (connect(socket_fd.get(), reinterpret_cast<const sockaddr*>(&target), sizeof(target)) != 0) {
    return UniqueFd();
  }
  return socket_fd;
}

// "rnicd_x_bucket{le="1"}" and "rnicd_x_sum" belong to the metric rnicd_x.
std::string MetricOf(const std::string& sample, const std::map<std::string, std::string>& types) {
  std::string name = sample.substr(0, sample.find('{'));
  for (const std::string suffix : {"_bucket", "_sum", "_count"}) {
    if (!types.contains(name) && name.ends_with(suffix)) {
      name.resize(name.size() - suffix.size());
    }
  }
  return name;
}

}  // namespace

HttpAnswer HttpGet(const std::string& address, const std::string& path) {
  HttpAnswer answer;
  const UniqueFd socket_fd = ConnectTcp(address);
  const std::string request = "GET " + path + " HTTP/1.0\r\nHost: localhost\r\n\r\n";
  if (!socket_fd.valid() || send(socket_fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return answer;
  }
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  while ((count = recv(socket_fd.get(), buffer.data(), buffer.size(), 0)) > 0) {
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  std::istringstream first_line(text);
  std::string version;
  first_line >> version >> answer.status;
  if (const size_t end = text.find("\r\n\r\n"); end != std::string::npos) {
    answer.body = text.substr(end + 4);
  }
  return answer;
}

MetricsPage::MetricsPage(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string hash;
    std::string kind;
    std::string name;
    std::string rest;
    words >> hash >> kind >> name;
    std::getline(words, rest);
    if (line.starts_with("# TYPE ")) {
      types_[name] = rest;
    } else if (line.starts_with("# HELP ")) {
      helps_[name] = rest;
    } else if (!line.empty() && line[0] != '#') {
      ReadSample(line);
    }
  }
  for (const auto& [sample, value] : samples_) {
    const std::string metric = MetricOf(sample, types_);
    if (!types_.contains(metric) || helps_[metric].size() < 2) {
      faults_ += sample + " has no type or no help\n";
    }
  }
}

void MetricsPage::ReadSample(const std::string& line) {
  const size_t space = line.rfind(' ');
  char* end = nullptr;
  const double value = std::strtod(line.c_str() + space + 1, &end);
  if (space == std::string::npos || *end != '\0') {
    faults_ += "not a sample: " + line + "\n";
  }
  samples_[line.substr(0, space)] = value;
}

double MetricsPage::Value(const std::string& sample) const {
  const auto found = samples_.find(sample);
  if (found == samples_.end()) {
    ADD_FAILURE() << "the metrics page has no " << sample;
    return -1;
  }
  return found->second;
}

double MetricsPage::Sum(const std::string& prefix) const {
  double sum = 0;
  for (auto sample = samples_.lower_bound(prefix); sample != samples_.end() && sample->first.starts_with(prefix);
       ++sample) {
    sum += sample->second;
  }
  return sum;
}

double MetricsPage::Total(const std::string& metric) const {
  return Sum(metric + "{") + (Has(metric) ? Value(metric) : 0);
}

}  // namespace rnicd::test
