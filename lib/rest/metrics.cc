#include "lib/rest/metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/check.h"

namespace tahoma::rest {
namespace {

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// `a="1",b="2"`, without braces.
std::string Rendered(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, Escaped(value));
  }
  return text;
}

std::string Braced(const std::string& labels) { return labels.empty() ? "" : "{" + labels + "}"; }

void AppendHistogram(std::string& text, const std::string& name, const std::string& labels,
                     const Histogram& histogram) {
  const std::string comma = labels.empty() ? "" : labels + ",";
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) {
    count += histogram.bucket(i);
    const std::string bound =
        i < histogram.bounds().size() ? fmt::format("{}", histogram.bounds()[i]) : "+Inf";
    text += fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", name, comma, bound, count);
  }
  text += fmt::format("{}_sum{} {}\n{}_count{} {}\n", name, Braced(labels), histogram.sum(), name,
                      Braced(labels), count);
}

}  // namespace

const std::vector<double> kLatencySeconds{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03,
                                          0.1,    0.3,    1,     3,     10};

void Histogram::Observe(double value) {
  const auto at = std::ranges::lower_bound(bounds_, value);
  buckets_[static_cast<std::size_t>(at - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

Metrics::Family& Metrics::FamilyOf(const std::string& name, const std::string& help, Kind kind) {
  const auto [at, is_new] = families_.try_emplace(name);
  if (is_new) {
    at->second.kind = kind;
    at->second.help = help;
  }
  TAHOMA_CHECK(at->second.kind == kind);
  return at->second;
}

Counter& Metrics::AddCounter(const std::string& name, const std::string& help,
                             const Labels& labels) {
  const std::lock_guard lock(mutex_);
  return FamilyOf(name, help, Kind::kCounter).counters[Rendered(labels)];
}

Gauge& Metrics::AddGauge(const std::string& name, const std::string& help, const Labels& labels) {
  const std::lock_guard lock(mutex_);
  return FamilyOf(name, help, Kind::kGauge).gauges[Rendered(labels)];
}

Histogram& Metrics::AddHistogram(const std::string& name, const std::string& help,
                                 const std::vector<double>& bounds, const Labels& labels) {
  const std::lock_guard lock(mutex_);
  Family& family = FamilyOf(name, help, Kind::kHistogram);
  return family.histograms.try_emplace(Rendered(labels), bounds).first->second;
}

void Metrics::AddCallback(const std::string& name, const std::string& help,
                          std::function<double()> value) {
  const std::lock_guard lock(mutex_);
  FamilyOf(name, help, Kind::kCallback).callback = std::move(value);
}

std::string Metrics::Text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [name, family] : families_) {
    const char* kind = family.kind == Kind::kCounter     ? "counter"
                       : family.kind == Kind::kHistogram ? "histogram"
                                                         : "gauge";
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, Escaped(family.help), name, kind);
    for (const auto& [labels, counter] : family.counters) {
      text += fmt::format("{}{} {}\n", name, Braced(labels), counter.value());
    }
    for (const auto& [labels, gauge] : family.gauges) {
      text += fmt::format("{}{} {}\n", name, Braced(labels), gauge.value());
    }
    for (const auto& [labels, histogram] : family.histograms) {
      AppendHistogram(text, name, labels, histogram);
    }
    if (family.callback) text += fmt::format("{} {}\n", name, family.callback());
  }
  return text;
}

}  // namespace tahoma::rest
