#pragma once

#include <map>
#include <string>

namespace rnicd::test {

struct HttpAnswer {
  // HTTP status; 0 if there was no response.
  int status = 0;
  std::string body;
};

// GET over plain HTTP. `address` is "127.0.0.1:9747".
HttpAnswer HttpGet(const std::string& address, const std::string& path);

// A metrics page in the Prometheus text format.
class MetricsPage {
 public:
  explicit MetricsPage(const std::string& text);

  // The value of one sample, named as on the page: "rnicd_sessions", "rnicd_registrations_total{result=\"ok\"}".
  // A test failure and -1 if there is no such sample.
  double Value(const std::string& sample) const;
  bool Has(const std::string& sample) const { return samples_.contains(sample); }
  // Sum of the samples whose names begin with `prefix`.
  double Sum(const std::string& prefix) const;
  // Sum of all samples of a metric, with or without labels; 0 if there are none.
  double Total(const std::string& metric) const;
  // Empty if every line is well formed and every metric has a help text and a type. Otherwise the errors.
  const std::string& faults() const { return faults_; }

 private:
  void ReadSample(const std::string& line);

  std::map<std::string, double> samples_;
  std::map<std::string, std::string> types_;
  std::map<std::string, std::string> helps_;
  std::string faults_;
};

}  // namespace rnicd::test
