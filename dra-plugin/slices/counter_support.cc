#include "dra-plugin/slices/counter_support.h"

#include <charconv>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/resource.h"

namespace tahoma::dra {
namespace {

// Kubernetes 1.35 moved counters into ResourceSlices of their own (KEP-4815).
constexpr int kMinorWithCountersApart = 35;

// "34+" is how some providers write a minor version.
absl::StatusOr<int> MinorVersion(const Json& version) {
  const std::string_view minor = kube::StringAt(version, {"minor"});
  int number = 0;
  const auto [end, error] = std::from_chars(minor.data(), minor.data() + minor.size(), number);
  if (kube::StringAt(version, {"major"}) != "1" || error != std::errc()) {
    return Internal("GET /version: the version {}.{} cannot be read",
                    kube::StringAt(version, {"major"}), minor);
  }
  return number;
}

// Returns a ResourceSlice with a counter, and also with a device that consumes the counter when
// `together`.
Json Probe(const SliceOwner& owner, bool together) {
  const CounterSet set = {.name = "probe", .counters = {{"counter", 1}}};
  SliceContent content = {.counter_sets = {set}, .devices = {}};
  if (together) {
    Device device;
    device.name = "probe";
    device.consumes = {set};
    content.devices.push_back(std::move(device));
  }
  return SliceObject(owner, {}, content, 0);
}

// Creates the ResourceSlice as a dry run; returns the fields that the server dropped.
absl::StatusOr<std::set<std::string>> DroppedOf(kube::Client& api, const Json& probe) {
  TAHOMA_ASSIGN_OR_RETURN(
      const Json kept, api.Call({.method = "POST",
                                 .target = kube::kResourceSlices.CollectionPath("") + "?dryRun=All",
                                 .headers = {{"Content-Type", "application/json"}},
                                 .body = probe.dump()},
                                kube::Client::Repeat::kMay));
  return DroppedFields({{"spec", probe.at("spec")}}, kept);
}

}  // namespace

absl::StatusOr<ServerCounters> FindCounterSupport(kube::Client& api, const SliceOwner& owner) {
  TAHOMA_ASSIGN_OR_RETURN(const Json version,
                          api.Call({.target = "/version"}, kube::Client::Repeat::kMay));
  TAHOMA_ASSIGN_OR_RETURN(const int minor, MinorVersion(version));
  const bool together = minor < kMinorWithCountersApart;
  const auto dropped = DroppedOf(api, Probe(owner, together));
  if (!dropped.ok()) {
    return Annotate(dropped.status(), "trying whether the API server keeps counters");
  }
  if (HasCounters(*dropped)) {
    return ServerCounters{.support = CounterSupport::kNone, .minor = minor};
  }
  return ServerCounters{.support = together ? CounterSupport::kTogether : CounterSupport::kApart,
                        .minor = minor};
}

absl::StatusOr<bool> FindTaintSupport(kube::Client& api, const SliceOwner& owner) {
  Device device;
  device.name = "probe";
  device.taints = {{std::string(kUnhealthyTaint), "probe", TaintEffect::kNoSchedule}};
  const SliceContent content = {.counter_sets = {}, .devices = {std::move(device)}};
  const auto dropped = DroppedOf(api, SliceObject(owner, {}, content, 0));
  if (!dropped.ok()) {
    return Annotate(dropped.status(), "trying whether the API server keeps taints");
  }
  return !dropped->contains(kTaintsField);
}

}  // namespace tahoma::dra
