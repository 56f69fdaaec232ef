#include "lib/rest/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <utility>

namespace tahoma::rest {
namespace {

prometheus::MetricFamily SamplesOf(const std::string& name, const std::string& help, bool counter,
                                   const std::vector<std::pair<Labels, double>>& values) {
  prometheus::MetricFamily family{
      .name = name,
      .help = help,
      .type = counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge,
      .metric = {}};
  for (const auto& [labels, value] : values) {
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    for (const auto& [label, text] : labels) metric.label.push_back({label, text});
    metric.counter.value = value;
    metric.gauge.value = value;
  }
  return family;
}

// Returns what reads the value of a metric without labels.
Metrics::ReadAll WithoutLabels(Metrics::Read read) {
  return [read = std::move(read)] {
    return std::vector<std::pair<Labels, double>>{{Labels{}, read()}};
  };
}

}  // namespace

const std::vector<double> kLatencySeconds{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03,
                                          0.1,    0.3,    1,     3,     10};

Metrics::Metrics() : registry_(std::make_unique<prometheus::Registry>()) {}

Metrics::~Metrics() = default;

Counter& Metrics::AddCounter(const std::string& name, const std::string& help,
                             const Labels& labels) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry_).Add(labels);
}

Gauge& Metrics::AddGauge(const std::string& name, const std::string& help, const Labels& labels) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry_).Add(labels);
}

Histogram& Metrics::AddHistogram(const std::string& name, const std::string& help,
                                 const std::vector<double>& bounds, const Labels& labels) {
  auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(*registry_);
  return family.Add(labels, bounds);
}

void Metrics::AddGaugeCallback(const std::string& name, const std::string& help, Read read) {
  const MutexLock lock(mutex_);
  callbacks_[name] = {.help = help, .counter = false, .read = WithoutLabels(std::move(read))};
}

void Metrics::AddCounterCallback(const std::string& name, const std::string& help, Read read) {
  const MutexLock lock(mutex_);
  callbacks_[name] = {.help = help, .counter = true, .read = WithoutLabels(std::move(read))};
}

void Metrics::AddGaugeFamily(const std::string& name, const std::string& help, ReadAll read) {
  const MutexLock lock(mutex_);
  callbacks_[name] = {.help = help, .counter = false, .read = std::move(read)};
}

void Metrics::AddCounterFamily(const std::string& name, const std::string& help, ReadAll read) {
  const MutexLock lock(mutex_);
  callbacks_[name] = {.help = help, .counter = true, .read = std::move(read)};
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, callback] : callbacks_) {
      families.push_back(SamplesOf(name, callback.help, callback.counter, callback.read()));
    }
  }
  std::ranges::sort(families, {}, &prometheus::MetricFamily::name);
  for (prometheus::MetricFamily& family : families) {
    std::ranges::sort(family.metric, {}, &prometheus::ClientMetric::label);
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace tahoma::rest
