#include "controller/ec2/place_actions.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/ec2/error.h"
#include "controller/ec2/filter.h"
#include "controller/ec2/instance_types.h"
#include "controller/ec2/page.h"
#include "controller/ec2/tree.h"
#include "controller/model/zone.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

using Names = std::set<std::string, std::less<>>;

constexpr std::size_t kNamesMost = 100;  // of regions, zones or types, as EC2 has it for types
// EC2's bounds of MaxResults.
constexpr std::size_t kTypeRowsLeast = 5;
constexpr std::size_t kTypeRowsMost = 100;

// Every zone is one that needs no opt-in, and no Local Zone.
constexpr std::array kRegionFilters = {TreeFilter{"endpoint", "regionEndpoint"},
                                       TreeFilter{"opt-in-status", "optInStatus"},
                                       TreeFilter{"region-name", "regionName"}};
constexpr std::array kZoneFilters = {TreeFilter{"group-long-name", ""},
                                     TreeFilter{"group-name", "groupName"},
                                     TreeFilter{"message", "messageSet/message"},
                                     TreeFilter{"opt-in-status", "optInStatus"},
                                     TreeFilter{"parent-zone-id", ""},
                                     TreeFilter{"parent-zone-name", ""},
                                     TreeFilter{"region-name", "regionName"},
                                     TreeFilter{"state", "zoneState"},
                                     TreeFilter{"zone-id", "zoneId"},
                                     TreeFilter{"zone-name", "zoneName"},
                                     TreeFilter{"zone-type", "zoneType"}};
constexpr std::array kOfferingFilters = {TreeFilter{"instance-type", "instanceType"},
                                         TreeFilter{"location", "location"}};
constexpr std::array<std::string_view, 4> kLocationTypes = {"region", "availability-zone",
                                                            "availability-zone-id", "outpost"};

Names ReadNames(Reader& reader, std::string_view name) {
  const std::vector<std::string> names = reader.Texts(name, kNamesMost);
  return {names.begin(), names.end()};
}

// Refuses names of `asked` that are not among `known`.
absl::Status CheckKnown(const Names& asked, const Names& known, const Ec2Code& code,
                        std::string_view what) {
  std::vector<std::string> unknown;
  std::ranges::set_difference(asked, known, std::back_inserter(unknown));
  if (unknown.empty()) return absl::OkStatus();
  return Refuse(code, "{}: [{}]; legal are {}", what, fmt::join(unknown, ", "),
                fmt::join(known, ", "));
}

bool IsAsked(const Names& asked, std::string_view name) {
  return asked.empty() || asked.contains(name);
}

Tree ZoneTree(const std::string& name, const std::string& id) {
  const std::string region = RegionOf(name);
  return {{"optInStatus", "opt-in-not-required"},
          {"messageSet", Tree::array()},
          {"regionName", region},
          {"zoneName", name},
          {"zoneId", id},
          {"groupName", region + "-zg-1"},
          {"networkBorderGroup", region},
          {"zoneType", "availability-zone"},
          {"zoneState", "available"}};
}

// Where a type is offered, in the words of a location type; empty on an Outpost: none has any.
std::string LocationOf(const OfferedType& place, std::string_view location_type) {
  if (location_type == "region") return RegionOf(place.availability_zone);
  if (location_type == "availability-zone") return place.availability_zone;
  if (location_type == "availability-zone-id") return place.availability_zone_id;
  return "";
}

}  // namespace

absl::StatusOr<std::string> DescribeRegions(const Call& call) {
  Reader& reader = call.reader;
  const Names asked = ReadNames(reader, "RegionName");
  reader.Flag("AllRegions");
  const std::vector<Filter> filters = ReadFilters(reader, NamesOf(kRegionFilters), false);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<OfferedType> places,
                          call.service.FindOfferedTypes(call.caller));
  Names regions;
  for (const OfferedType& place : places) regions.insert(RegionOf(place.availability_zone));
  TAHOMA_RETURN_IF_ERROR(CheckKnown(asked, regions, kInvalidParameterValue, "Invalid region"));
  TreePage page({.binding = call.binding}, filters, kRegionFilters);
  for (const std::string& region : regions) {
    if (!IsAsked(asked, region)) continue;
    page.Offer(region, {{"optInStatus", "opt-in-not-required"},
                        {"regionName", region},
                        {"regionEndpoint", call.host}});
  }
  return page.Answer(call.head, "regionInfo");
}

absl::StatusOr<std::string> DescribeZones(const Call& call) {
  Reader& reader = call.reader;
  const Names asked_names = ReadNames(reader, "ZoneName");
  const Names asked_ids = ReadNames(reader, "ZoneId");
  reader.Flag("AllAvailabilityZones");
  const std::vector<Filter> filters = ReadFilters(reader, NamesOf(kZoneFilters), false);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<OfferedType> places,
                          call.service.FindOfferedTypes(call.caller));
  std::map<std::string, std::string> zones;  // ids by name
  Names names;
  Names ids;
  for (const OfferedType& place : places) {
    zones[place.availability_zone] = place.availability_zone_id;
    names.insert(place.availability_zone);
    ids.insert(place.availability_zone_id);
  }
  TAHOMA_RETURN_IF_ERROR(
      CheckKnown(asked_names, names, kInvalidParameterValue, "Invalid availability zone"));
  TAHOMA_RETURN_IF_ERROR(
      CheckKnown(asked_ids, ids, kInvalidParameterValue, "Invalid availability zone-id"));
  TreePage page({.binding = call.binding}, filters, kZoneFilters);
  for (const auto& [name, id] : zones) {
    if (IsAsked(asked_names, name) && IsAsked(asked_ids, id)) page.Offer(name, ZoneTree(name, id));
  }
  return page.Answer(call.head, "availabilityZoneInfo");
}

absl::StatusOr<std::string> DescribeTypes(const Call& call) {
  Reader& reader = call.reader;
  const Names asked = ReadNames(reader, "InstanceType");
  const bool unsupported_too = reader.Flag("IncludeUnsupportedInRegion").value_or(false);
  const std::span<const TreeFilter> fields = InstanceTypeFilters();
  const std::vector<Filter> filters = ReadFilters(reader, NamesOf(fields), false);
  const PageRequest request =
      ReadPage(reader, call.binding, kTypeRowsMost, kTypeRowsMost, kTypeRowsLeast);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<OfferedType> places,
                          call.service.FindOfferedTypes(call.caller));
  Names supported;
  for (const OfferedType& place : places) supported.insert(place.instance_type);
  Names shown = supported;
  if (unsupported_too) {
    for (const hw::Ec2Type& type : hw::Ec2Types()) shown.emplace(type.name);
  }
  TAHOMA_RETURN_IF_ERROR(CheckKnown(asked, shown, kInvalidInstanceType,
                                    "The following supplied instance types do not exist"));
  TreePage page(request, filters, fields);
  for (const std::string& name : shown) {
    if (!IsAsked(asked, name)) continue;
    const Tree type = InstanceTypeTree(*hw::FindEc2Type(name), supported.contains(name));
    if (!page.Offer(name, type)) break;
  }
  return page.Answer(call.head, "instanceTypeSet");
}

absl::StatusOr<std::string> DescribeTypeOfferings(const Call& call) {
  Reader& reader = call.reader;
  const std::string location_type = reader.Text("LocationType").value_or("region");
  if (std::ranges::find(kLocationTypes, location_type) == kLocationTypes.end()) {
    reader.Fail(Refuse(kInvalidParameterValue, "LocationType is not known; legal are {}",
                       fmt::join(kLocationTypes, ", ")));
  }
  const std::vector<Filter> filters = ReadFilters(reader, NamesOf(kOfferingFilters), false);
  const PageRequest request =
      ReadPage(reader, call.binding, kPageRowsMost, kPageRowsMost, kTypeRowsLeast);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<OfferedType> places,
                          call.service.FindOfferedTypes(call.caller));
  std::map<std::string, Tree> offered;  // by type and location
  for (const OfferedType& place : places) {
    const std::string location = LocationOf(place, location_type);
    if (location.empty()) continue;
    offered[fmt::format("{}/{}", place.instance_type, location)] = {
        {"instanceType", place.instance_type},
        {"locationType", location_type},
        {"location", location}};
  }
  TreePage page(request, filters, kOfferingFilters);
  for (const auto& [key, offering] : offered) {
    if (!page.Offer(key, offering)) break;
  }
  return page.Answer(call.head, "instanceTypeOfferingSet");
}

}  // namespace tahoma::controller::ec2
