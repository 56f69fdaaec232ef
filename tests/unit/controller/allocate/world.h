// A small world of devices and claims for tests of the allocator, as objects of the API.
//
//   World world;
//   world.slices = {SliceOf("a", "n0", {{"d0", {}}, {"d1", {}}})};
//   world.claims = {ClaimOf("c", {RequestOf("r", 2)})};
//   EXPECT_EQ(world.Devices(), "r:d0 r:d1");
//
// Thread safety: values.

#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/allocate/allocator.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/field.h"

namespace tahoma::controller::allocate {

inline constexpr std::string_view kTestDriver = "d.com";

using Answer = absl::StatusOr<std::optional<std::vector<kube::Allocation>>>;

// A device's JSON besides the name.
inline Json DeviceOf(const std::string& name, Json rest = Json::object()) {
  rest["name"] = name;
  return rest;
}

// A slice of a pool with one slice, for node "n".
inline Json SliceOf(const std::string& pool, const std::vector<Json>& devices) {
  return {{"metadata", {{"name", pool + "-slice"}}},
          {"spec",
           {{"driver", kTestDriver},
            {"nodeName", "n"},
            {"pool", {{"name", pool}, {"generation", 1}, {"resourceSliceCount", 1}}},
            {"devices", devices}}}};
}

inline Json RequestOf(const std::string& name, int count, Json rest = Json::object()) {
  rest["deviceClassName"] = "any";
  rest["count"] = count;
  return {{"name", name}, {"exactly", std::move(rest)}};
}

inline Json AllOf(const std::string& name, Json rest = Json::object()) {
  rest["deviceClassName"] = "any";
  rest["allocationMode"] = "All";
  return {{"name", name}, {"exactly", std::move(rest)}};
}

inline Json Selector(const std::string& expression) {
  return {{"selectors", Json::array({Json{{"cel", {{"expression", expression}}}}})}};
}

// The spec of a claim.
inline Json ClaimOf(const std::vector<Json>& requests, Json constraints = Json::array(),
                    Json configs = Json::array()) {
  return {{"devices",
           {{"requests", requests},
            {"constraints", std::move(constraints)},
            {"config", std::move(configs)}}}};
}

inline kube::DeviceClass AnyClass() {
  kube::DeviceClass any;
  any.name = "any";
  return any;
}

struct World {
  std::string node = "n";
  kube::Labels labels;
  std::vector<Json> slices;
  std::vector<Json> claims;  // specs; the claims are c0, c1, …, with these as uids
  kube::DeviceClass any = AnyClass();
  InUse in_use;
  Features features;
  std::size_t steps = kStepsMost;

  Answer Allocate() const {
    std::vector<UnallocatedClaim> wanted;
    for (const Json& spec : claims) {
      kube::Reading reading(spec);
      const std::string name = fmt::format("c{}", wanted.size());
      wanted.push_back({.name = name, .uid = name, .spec = kube::ParseClaimSpec(reading.root())});
      TAHOMA_RETURN_IF_ERROR(reading.status());
    }
    const auto find = [&](std::string_view name) { return name == any.name ? &any : nullptr; };
    TAHOMA_ASSIGN_OR_RETURN(const Allocator allocator,
                            Allocator::Make(std::move(wanted), find, features));
    std::vector<kube::ResourceSlice> parsed;
    for (const Json& slice : slices) {
      auto one = kube::ParseResourceSlice(slice, kube::SliceDetails::kRead);
      TAHOMA_CHECK_OK(one.status());
      parsed.push_back(*std::move(one));
    }
    std::vector<const kube::ResourceSlice*> list;
    for (const kube::ResourceSlice& slice : parsed) list.push_back(&slice);
    return allocator.AllocateOn({node, labels}, list, in_use, steps);
  }

  // The answer as text: "r:d0 r:d1 | q:d2" for two claims, "none", or the error's message.
  std::string Devices() const {
    const Answer answer = Allocate();
    if (!answer.ok()) return std::string(Message(answer.status()));
    if (!answer->has_value()) return "none";
    std::string text;
    for (const kube::Allocation& allocation : **answer) {
      if (!text.empty()) text += " |";
      for (const kube::DeviceResult& result : allocation.results) {
        text += fmt::format("{}{}:{}", text.empty() ? "" : " ", result.request, result.device);
      }
    }
    return text;
  }
};

}  // namespace tahoma::controller::allocate
