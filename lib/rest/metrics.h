// Counters, gauges and histograms, and their Prometheus text.
//
//   Metrics metrics;
//   Counter& placed = metrics.AddCounter("tahoma_gangs_placed_total", "Gangs placed.");
//   Histogram& took = metrics.AddHistogram("tahoma_plan_seconds", "One plan.", kLatencySeconds);
//   placed.Increment();
//   took.Observe(0.004);
//   metrics.Text();          // what GET /metrics answers
//
// Names follow Prometheus: a unit last (_seconds, _bytes), _total for counters.
//
// Scope: numbers of this program. A label's values must come from a small fixed set.
//
// Thread safety: adding, changing and reading may happen on any thread at the same time; a change
// is one or two relaxed atomic additions.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tahoma::rest {

using Labels = std::vector<std::pair<std::string, std::string>>;

class Counter {
 public:
  void Increment(std::uint64_t by = 1) { value_.fetch_add(by, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

class Gauge {
 public:
  void Set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void Add(std::int64_t by) { value_.fetch_add(by, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_ = 0;
};

class Histogram {
 public:
  // `bounds` ascend; a last bucket without a bound is added.
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), buckets_(bounds_.size() + 1) {}
  void Observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  // Observations in bucket i alone (not those below it).
  std::uint64_t bucket(std::size_t i) const { return buckets_[i].load(std::memory_order_relaxed); }
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::deque<std::atomic<std::uint64_t>> buckets_;
  std::atomic<double> sum_ = 0;
};

// 100 us to 10 s.
extern const std::vector<double> kLatencySeconds;

class Metrics {
 public:
  // The same name and labels give the same metric again; the same name with another kind is a
  // mistake of the program. References stay valid as long as this object.
  Counter& AddCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& AddGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  Histogram& AddHistogram(const std::string& name, const std::string& help,
                          const std::vector<double>& bounds, const Labels& labels = {});
  // A gauge whose value is asked for at every scrape.
  void AddCallback(const std::string& name, const std::string& help, std::function<double()> value);

  // Prometheus text exposition format 0.0.4.
  std::string Text() const;

 private:
  enum class Kind { kCounter, kGauge, kHistogram, kCallback };
  struct Family {
    Kind kind = Kind::kCounter;
    std::string help;
    std::map<std::string, Counter> counters;  // by rendered labels
    std::map<std::string, Gauge> gauges;
    std::map<std::string, Histogram> histograms;
    std::function<double()> callback;
  };

  Family& FamilyOf(const std::string& name, const std::string& help, Kind kind);

  mutable std::mutex mutex_;
  std::map<std::string, Family> families_;
};

}  // namespace tahoma::rest
