#include "daemon/metrics/generations/counter_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace rnicd::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kHistogram[] =
    "# HELP h_seconds How long.\n"
    "# TYPE h_seconds histogram\n"
    "h_seconds_count{method=\"a\"} 3\n"
    "h_seconds_sum{method=\"a\"} 0.75\n"
    "h_seconds_bucket{method=\"a\",le=\"5e-06\"} 1\n"
    "h_seconds_bucket{method=\"a\",le=\"+Inf\"} 3\n";

TEST(ParseCounters, ACounterHasItsLabelsAndItsHelp) {
  const auto read = ParseCounters(
      "# HELP c_total All of \"it\".\n# TYPE c_total counter\nc_total 4.5\n"
      "c_total{b=\"back\\\\slash\",a=\"say \\\"x,y\\\"\\n\"} 1.5e+12\n");
  ASSERT_TRUE(read.ok()) << read.status();
  const CounterSamples& family = read->at("c_total");
  EXPECT_EQ(family.help, "All of \"it\".");
  EXPECT_EQ(family.type, MetricType::Counter);
  EXPECT_EQ(family.by_labels.at({}).counter.value, 4.5);
  EXPECT_EQ(family.by_labels.at({{"a", "say \"x,y\"\n"}, {"b", "back\\slash"}}).counter.value, 1.5e12);
}

TEST(ParseCounters, AHistogramIsOneSample) {
  const auto read = ParseCounters(kHistogram);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_THAT(read->at("h_seconds").by_labels, SizeIs(1));
  const ClientMetric::Histogram& histogram = read->at("h_seconds").by_labels.at({{"method", "a"}}).histogram;
  EXPECT_EQ(histogram.sample_count, 3u);
  EXPECT_EQ(histogram.sample_sum, 0.75);
  ASSERT_THAT(histogram.bucket, SizeIs(2));
  EXPECT_EQ(histogram.bucket[0].upper_bound, 5e-6);
  EXPECT_EQ(histogram.bucket[0].cumulative_count, 1u);
}

TEST(ParseCounters, OtherTypesAreLeftOut) {
  const auto read = ParseCounters("# TYPE g gauge\ng -1\n# TYPE s summary\ns{quantile=\"0.5\"} NaN\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, IsEmpty());
}

TEST(ParseCounters, WhatIsNoSuchTextIsRefused) {
  const std::string type = "# TYPE c_total counter\n";
  for (const std::string& text :
       {std::string("c_total 1\n"), std::string("# TYPE c_total counter"), type + "c_total 1", type + "c_total\n",
        type + "c_total \n", type + "c_total -1\n", type + "c_total NaN\n", type + "c_total +Inf\n",
        type + "c_total 1 2\n", type + "other_total 1\n", type + "c_total 1\nc_total 2\n", type + "c_total{ 1\n",
        type + "c_total{a} 1\n", type + "c_total{a=\"b} 1\n", type + "c_total{a=\"b\\\"} 1\n",
        type + "c_total{a=\"b\" 1\n", type + type, std::string("# TYPE  counter\n"),
        std::string("\x7f"
                    "ELF\n")}) {
    EXPECT_FALSE(ParseCounters(text).ok()) << text;
  }
}

TEST(ParseCounters, AHistogramThatContradictsItselfIsRefused) {
  const std::string type = "# TYPE h histogram\n";
  for (const std::string& text :
       {type + "h_count 1\n", type + "h_sum 1\n", type + "h_bucket 1\n", type + "h_max 1\n",
        type + "h_count 2\nh_bucket{le=\"+Inf\"} 1\n", type + "h_count 1\nh_bucket{le=\"1\"} 1\n",
        type + "h_count 2\nh_bucket{le=\"1\"} 3\nh_bucket{le=\"+Inf\"} 2\n",
        type + "h_count 1\nh_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\n",
        type + "h_count 1e300\nh_bucket{le=\"+Inf\"} 1\n"}) {
    EXPECT_FALSE(ParseCounters(text).ok()) << text;
  }
}

TEST(AddSample, ABucketOfAnotherBoundGetsWhatIsSurelyBelowIt) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  ClientMetric from;
  from.histogram = {.sample_count = 9, .sample_sum = 20, .bucket = {{4, 1}, {6, 3}, {9, kInfinite}}};
  ClientMetric to;
  to.histogram = {.sample_count = 1, .sample_sum = 2, .bucket = {{0, 0.5}, {0, 2}, {1, 3}, {1, kInfinite}}};
  AddSample(MetricType::Histogram, from, to);
  EXPECT_EQ(to.histogram.sample_count, 10u);
  EXPECT_EQ(to.histogram.sample_sum, 22);
  std::vector<uint64_t> counts;
  for (const ClientMetric::Bucket& bucket : to.histogram.bucket) {
    counts.push_back(bucket.cumulative_count);
  }
  EXPECT_EQ(counts, (std::vector<uint64_t>{0, 4, 7, 10}));
}

}  // namespace
}  // namespace rnicd::metrics
