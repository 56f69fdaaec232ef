// Judges our allocator of devices by the cases of Kubernetes' own allocator
// (tests/cluster/allocator_cases.sh).
//
//   allocator-cases FOLDER [CASE…]     # a line for each case that differs, then "N of 225"
//
// A case is the same when both allocators find nothing, both fail for the same kind of reason, or
// both give the same devices, with the same shares, capacities, conditions, tolerations,
// configurations and nodes. A context that is cancelled is a search that may try nothing.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/allocate/allocator.h"
#include "lib/base/files.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/device_details.h"
#include "lib/kube/objects/node.h"

namespace tahoma::controller::allocate {
namespace {

constexpr std::size_t kCasesWanted = 225;

// Words of Kubernetes' error, words of ours, for each reason.
struct Reason {
  std::string_view theirs;
  std::string_view ours;
};
constexpr Reason kReasons[] = {
    {"a claim constraint would not be satisfied", "which a constraint of the claim forbids"},
    {"CEL compile error", "undeclared reference"},
    {"unsupported count mode", "must be ExactCount or All"},
    {"exceeds the claim limit of 32", "asks for more than 32 devices"},
    {"unsupported attribute value", "of a type that is not known"},
    {"invalid resource pools were encountered", "no devices were found, and pool"},
    {"admin access is requested, but the feature is disabled", "admin access is switched off"},
    {"is currently being updated", "is being published"},
    {"empty constraint", "is neither matchAttribute nor distinctAttribute"},
    {"could not retrieve device class", "does not exist"},
    {"has capacity requests, but", "consumable capacity is switched off"},
    {"CEL expression empty", "is not of kind \"cel\""},
    {"missing device class name", "names no device class"},
    {"has subrequests, but", "firstAvailable is switched off"},
    {"filter operation aborted", "as many tries as are allowed"},
};

Features FeaturesOf(kube::Field list) {
  Features features{.admin_access = false,
                    .binding_conditions = false,
                    .consumable_capacity = false,
                    .device_taints = false,
                    .list_attributes = false,
                    .partitionable_devices = false,
                    .prioritized_list = false};
  for (const std::string& name : list.Texts()) {
    if (name == "DRAAdminAccess") features.admin_access = true;
    if (name.starts_with("DRADeviceBindingConditions")) features.binding_conditions = true;
    if (name == "DRAConsumableCapacity") features.consumable_capacity = true;
    if (name == "DRADeviceTaints") features.device_taints = true;
    if (name == "DRAListTypeAttributes") features.list_attributes = true;
    if (name == "DRAPartitionableDevices") features.partitionable_devices = true;
    if (name == "DRAPrioritizedList") features.prioritized_list = true;
  }
  return features;
}

DeviceId ParseId(std::string_view text) {
  const std::size_t first = text.find('/');
  const std::size_t last = text.rfind('/');
  return {.driver = std::string(text.substr(0, first)),
          .pool = std::string(text.substr(first + 1, last - first - 1)),
          .device = std::string(text.substr(last + 1))};
}

InUse ParseInUse(kube::Field root) {
  InUse in_use;
  for (const std::string& id : root.At("inUse").Texts()) in_use.devices.insert(ParseId(id));
  root.At("shares").Entries([&](const std::string& text, kube::Field amounts) {
    const DeviceId id = ParseId(text);
    auto& consumed = in_use.shares[id];
    amounts.Entries([&](const std::string& name, kube::Field amount) {
      consumed.emplace_back(kube::ParseQualifiedName(name, id.driver), kube::ParseQuantity(amount));
    });
  });
  return in_use;
}

using Answer = absl::StatusOr<std::optional<std::vector<kube::Allocation>>>;

Answer Allocate(kube::Field root) {
  std::vector<kube::DeviceClass> classes;
  for (const kube::Field one : root.At("classes").Items()) {
    TAHOMA_ASSIGN_OR_RETURN(kube::DeviceClass parsed, kube::ParseDeviceClass(one.json()));
    classes.push_back(std::move(parsed));
  }
  std::vector<kube::ResourceSlice> slices;
  for (const kube::Field one : root.At("slices").Items()) {
    TAHOMA_ASSIGN_OR_RETURN(kube::ResourceSlice parsed,
                            kube::ParseResourceSlice(one.json(), kube::SliceDetails::kRead));
    slices.push_back(std::move(parsed));
  }
  std::vector<UnallocatedClaim> claims;
  for (const kube::Field one : root.At("claims").Items()) {
    kube::Reading reading(one.json());
    claims.push_back({.name = std::string(one.At("metadata").At("name").Text()),
                      .uid = std::string(one.At("metadata").At("uid").Text()),
                      .spec = kube::ParseClaimSpec(reading.root().At("spec"))});
    TAHOMA_RETURN_IF_ERROR(reading.StatusOf("claim"));
  }
  TAHOMA_ASSIGN_OR_RETURN(const kube::Node node, kube::ParseNode(root.At("node").json()));
  std::vector<const kube::ResourceSlice*> list;
  for (const kube::ResourceSlice& slice : slices) list.push_back(&slice);
  const auto find = [&](std::string_view name) {
    const auto at = std::ranges::find(classes, name, &kube::DeviceClass::name);
    return at == classes.end() ? nullptr : &*at;
  };
  TAHOMA_ASSIGN_OR_RETURN(
      const Allocator allocator,
      Allocator::Make(std::move(claims), find, FeaturesOf(root.At("features"))));
  return allocator.AllocateOn({node.name, node.labels}, list, ParseInUse(root),
                              root.At("cancelled").Bool() ? 0 : kStepsMost);
}

void SortBy(Json* list, const char* member) {
  if (list == nullptr || !list->is_array()) return;
  std::ranges::stable_sort(list->get_ref<Json::array_t&>(), {},
                           [&](const Json& one) { return one.value(member, ""); });
}

Json* Find(Json& object, const char* member) {
  const auto found = object.find(member);
  return found == object.end() ? nullptr : &*found;
}

// An allocation of ours or of Kubernetes as text. Left out is what may differ by chance: the ids of
// shares, how a quantity is written, the order of requirements on nodes and, where Kubernetes'
// allocator goes through its pools in the order of a Go map, the order of devices.
std::string TextOf(Json allocation, bool any_order) {
  Json& results = allocation["devices"]["results"];
  for (Json& result : results) {
    if (Json* id = Find(result, "shareID")) *id = "some";
    Json* const consumed = Find(result, "consumedCapacity");
    if (consumed == nullptr) continue;
    for (Json& amount : *consumed) {
      amount = kube::Quantity::Parse(amount.get<std::string>())->Value();
    }
  }
  if (any_order) {
    for (const char* key : {"device", "pool", "driver", "request"}) SortBy(&results, key);
  }
  if (Json* const selector = Find(allocation, "nodeSelector")) {
    for (Json& term : (*selector)["nodeSelectorTerms"]) {
      for (const char* list : {"matchExpressions", "matchFields"}) SortBy(Find(term, list), "key");
    }
  }
  return allocation.dump() + "\n";
}

std::string TextOfOurs(const std::vector<kube::Allocation>& allocations, bool any_order) {
  std::string text;
  for (const kube::Allocation& one : allocations) {
    text += TextOf(ParseJson(kube::RenderAllocation(one).dump()), any_order);
  }
  return text;
}

std::string TextOfTheirs(kube::Field results, bool any_order) {
  std::string text;
  for (const kube::Field one : results.Items()) {
    text += TextOf(ParseJson(one.json().dump()), any_order);
  }
  return text;
}

bool SameReason(std::string_view theirs, std::string_view ours) {
  return std::ranges::any_of(kReasons, [&](const Reason& reason) {
    return theirs.find(reason.theirs) != std::string_view::npos &&
           ours.find(reason.ours) != std::string_view::npos;
  });
}

// Returns how ours differs; empty when both are the same.
std::string Difference(kube::Field root) {
  const std::string_view error = root.At("error").Text();
  const Answer answer = Allocate(root);
  if (!answer.ok()) {
    if (SameReason(error, Message(answer.status()))) return "";
    return fmt::format("fails: {}\n  Kubernetes: {}", Message(answer.status()),
                       error.empty() ? "allocates or finds nothing" : error);
  }
  // Its allocator for features that are on everywhere; the two newer ones sort their pools.
  const Features features = FeaturesOf(root.At("features"));
  const bool any_order =
      !features.binding_conditions && !features.consumable_capacity && !features.list_attributes;
  const std::string ours = answer->has_value() ? TextOfOurs(**answer, any_order) : "";
  const std::string theirs = TextOfTheirs(root.At("results"), any_order);
  if (!error.empty()) return fmt::format("does not fail: {}\n  Kubernetes: {}", ours, error);
  if (ours == theirs) return "";
  return fmt::format("{}\n  Kubernetes: {}", ours.empty() ? "finds nothing" : ours,
                     theirs.empty() ? "finds nothing" : theirs);
}

int Judge(const std::filesystem::path& folder, const std::set<std::string>& only) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::size_t same = 0;
  for (const std::filesystem::path& file : files) {
    if (!only.empty() && !only.contains(file.stem().string())) continue;
    const auto text = ReadFile(file.string());
    const Json object = text.ok() ? TryParseJson(*text) : Json(Json::value_t::discarded);
    if (object.is_discarded()) {
      std::cout << file.string() << " is not JSON\n";
      continue;
    }
    kube::Reading reading(object);
    std::string difference = Difference(reading.root());
    if (!reading.status().ok()) difference = std::string(Message(reading.status()));
    if (difference.empty()) {
      ++same;
    } else {
      std::cout << file.stem().string() << ": " << difference << "\n";
    }
  }
  std::cout << same << " of " << kCasesWanted << "\n";
  return same == kCasesWanted && files.size() == kCasesWanted ? 0 : 1;
}

}  // namespace
}  // namespace tahoma::controller::allocate

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: allocator-cases FOLDER [CASE...]\n";
    return 2;
  }
  return tahoma::controller::allocate::Judge(argv[1], {argv + 2, argv + argc});
}
