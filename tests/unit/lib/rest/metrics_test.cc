// Metrics and their text.

#include "lib/rest/metrics.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tahoma::rest {
namespace {

TEST(MetricsTest, TheTextIsPrometheus) {
  Metrics metrics;
  metrics.AddCounter("b_total", "Bs.", {{"kind", "x\"y"}}).Increment(3);
  metrics.AddGauge("a", "As.").Set(-2);
  metrics.AddGaugeCallback("c", "Cs.", [] { return 1.5; });
  metrics.AddCounterCallback("e_total", "Es.", [] { return 7; });
  metrics.AddCounterFamily("f_total", "Fs.", [] {
    return std::vector<std::pair<Labels, double>>{{{{"l", "w"}}, 2}, {{{"l", "v"}}, 1}};
  });
  Histogram& histogram = metrics.AddHistogram("d_seconds", "Ds.", {0.5, 2}, {{"l", "v"}});
  histogram.Observe(0.5);
  histogram.Observe(1);
  histogram.Observe(7);
  EXPECT_EQ(metrics.Text(),
            "# HELP a As.\n# TYPE a gauge\na -2\n"
            "# HELP b_total Bs.\n# TYPE b_total counter\nb_total{kind=\"x\\\"y\"} 3\n"
            "# HELP c Cs.\n# TYPE c gauge\nc 1.5\n"
            "# HELP d_seconds Ds.\n# TYPE d_seconds histogram\n"
            "d_seconds_count{l=\"v\"} 3\nd_seconds_sum{l=\"v\"} 8.5\n"
            "d_seconds_bucket{l=\"v\",le=\"0.5\"} 1\nd_seconds_bucket{l=\"v\",le=\"2\"} 2\n"
            "d_seconds_bucket{l=\"v\",le=\"+Inf\"} 3\n"
            "# HELP e_total Es.\n# TYPE e_total counter\ne_total 7\n"
            "# HELP f_total Fs.\n# TYPE f_total counter\nf_total{l=\"v\"} 1\nf_total{l=\"w\"} 2\n");
}

TEST(MetricsTest, TheSameNameIsTheSameMetric) {
  Metrics metrics;
  metrics.AddCounter("a_total", "A.").Increment();
  metrics.AddCounter("a_total", "A.").Increment();
  EXPECT_EQ(metrics.AddCounter("a_total", "A.").Value(), 2.0);
}

TEST(MetricsTest, ThreadsLoseNothing) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Histogram& histogram = metrics.AddHistogram("h", "H.", {1});
      for (int i = 0; i < 1000; ++i) {
        metrics.AddCounter("c_total", "C.").Increment();
        histogram.Observe(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(metrics.AddCounter("c_total", "C.").Value(), 4000.0);
  const auto histogram = metrics.AddHistogram("h", "H.", {1}).Collect().histogram;
  EXPECT_EQ(histogram.sample_count, 4000u);
  EXPECT_EQ(histogram.sample_sum, 4000.0);
}

}  // namespace
}  // namespace tahoma::rest
