#include "controller/ctl/published_summary.h"

#include <fmt/format.h>

#include "controller/ctl/summary.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/kube/client.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {
namespace {

std::string AgeText(std::chrono::seconds age) {
  const auto seconds = age.count();
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} h", seconds / 3600);
}

}  // namespace

absl::StatusOr<PublishedSummary> ReadPublishedSummary(kube::Transport& transport) {
  const kube::ObjectKey key{kSummaryNamespace, kSummaryName};
  kube::InterruptibleSleeper sleeper;
  kube::Client client(transport, sleeper, Rng(0), {.attempts = 1});
  const auto place = [&](const absl::Status& status) {
    return Annotate(status, kube::kConfigMaps.ObjectPath(key));
  };
  const absl::StatusOr<Json> object = client.Get(kube::kConfigMaps, key);
  if (!object.ok()) return place(object.status());
  absl::StatusOr<PublishedSummary> published = ParseFleetSummaryObject(*object);
  if (!published.ok()) return place(published.status());
  return published;
}

std::string PublishedSummaryText(const PublishedSummary& published, WallTime now) {
  std::string text = SummaryText(published.summary);
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(now - published.made);
  if (age <= kSummaryFresh) return text;
  return text + fmt::format("\nThis was so {} ago, at {}; no controller has renewed it since.\n",
                            AgeText(age), FormatTime(published.made));
}

}  // namespace tahoma::controller
