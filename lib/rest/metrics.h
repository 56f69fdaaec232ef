// The program's counters, gauges and histograms, and the text that Prometheus reads.
//
//   Metrics metrics;
//   Counter& placed = metrics.AddCounter("tahoma_gangs_placed_total", "Gangs placed.");
//   Histogram& took = metrics.AddHistogram("tahoma_plan_seconds", "One plan.", kLatencySeconds);
//   placed.Increment();
//   took.Observe(0.004);
//   metrics.Text();          // what GET /metrics answers
//
// Names follow Prometheus: base units (seconds, bytes, ratios), the unit last, `_total` for
// counters (https://prometheus.io/docs/practices/naming/).
//
// Scope: a shell over prometheus-cpp, which has no counter that is asked for its value. A label's
// values must come from a small fixed set.
//
// Thread safety: metrics may be added, changed and read on any thread at the same time.

#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/mutex.h"

namespace prometheus {
class Registry;
}  // namespace prometheus

namespace tahoma::rest {

using Labels = std::map<std::string, std::string>;
using Counter = prometheus::Counter;
using Gauge = prometheus::Gauge;
using Histogram = prometheus::Histogram;

// 100 us to 10 s.
extern const std::vector<double> kLatencySeconds;

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // The same name and labels give the same metric again. The same name with another kind, or a name
  // that Prometheus does not allow, is a mistake of the program and throws. References stay valid
  // as long as this object.
  Counter& AddCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& AddGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // `bounds` ascend; a last bucket without a bound is added.
  Histogram& AddHistogram(const std::string& name, const std::string& help,
                          const std::vector<double>& bounds, const Labels& labels = {});

  // A metric without labels whose value is asked for at every scrape, on the thread that scrapes.
  using Read = std::function<double()>;
  void AddGaugeCallback(const std::string& name, const std::string& help, Read read);
  // `read` never gives less than before.
  void AddCounterCallback(const std::string& name, const std::string& help, Read read);

  // A gauge or counter with labels, all of whose values are asked for at every scrape. There must
  // be few.
  using ReadAll = std::function<std::vector<std::pair<Labels, double>>()>;
  void AddGaugeFamily(const std::string& name, const std::string& help, ReadAll read);
  // No value is ever less than before.
  void AddCounterFamily(const std::string& name, const std::string& help, ReadAll read);

  // Prometheus text exposition format 0.0.4, in the order of names and labels.
  std::string Text() const;

 private:
  struct Callback {
    std::string help;
    bool counter = false;
    ReadAll read;
  };

  const std::unique_ptr<prometheus::Registry> registry_;
  mutable Mutex mutex_;
  std::map<std::string, Callback> callbacks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::rest
