#include "controller/ec2/requests.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "controller/reserve/ec2_id.h"
#include "lib/base/ascii.h"
#include "lib/base/status.h"
#include "lib/kube/name.h"

namespace tahoma::controller::ec2 {
namespace {

// Far above the limits of the service, which checks them and names them.
constexpr std::int64_t kCountMost = 1'000'000;
constexpr std::int64_t kHoursMost = 1'000'000;
constexpr std::size_t kInstanceTypePreferencesMost = 10;
constexpr std::size_t kOfferingDigitsMost = 1000;  // an offering's id holds all its fields
constexpr std::size_t kClientTokenBytesMost = 64;
// A block and its reservation have the same tags.
constexpr std::array<std::string_view, 2> kTaggedResources = {"capacity-reservation",
                                                              "capacity-block"};
constexpr std::string_view kReservedTagPrefix = "aws:";

std::string ReadOfferingId(Reader& reader, std::string_view name, std::string_view prefix) {
  std::string id = reader.Required(name);
  if (!IsEc2Id(id, prefix, kOfferingDigitsMost)) {
    reader.Fail(MalformedId(kOfferingMalformed, id, prefix));
  }
  return id;
}

// An instance's id is its node's name. An id with EC2's prefix must have the form of EC2's ids.
bool IsInstanceId(const std::string& id) {
  if (id.starts_with(kInstanceIds.prefix)) return IsEc2Id(id, kInstanceIds.prefix);
  return !kube::WrongDns1123Subdomain(id);
}

std::string ReadClientToken(Reader& reader) {
  std::string token = reader.Text("ClientToken").value_or("");
  const bool visible = std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7f'; });
  if (token.size() > kClientTokenBytesMost || !visible) {
    reader.Fail(Refuse(kInvalidParameterValue,
                       "ClientToken must have at most {} visible ASCII characters",
                       kClientTokenBytesMost));
  }
  return token;
}

// Checks which search parameters are given together.
void CheckCombination(Reader& reader) {
  const bool type = reader.Has("InstanceType");
  const bool preferences = reader.Has("InstanceTypePreference");
  const bool ultraserver = reader.Has("UltraserverType");
  const auto refuse = [&](std::string_view what) {
    reader.Fail(Refuse(kInvalidParameterCombination,
                       "{}; legal is one of InstanceType with InstanceCount, "
                       "InstanceTypePreference.N with InstanceCount, and UltraserverType with "
                       "UltraserverCount",
                       what));
  };
  if (type && ultraserver) refuse("InstanceType and UltraserverType are both given");
  if (type && preferences) refuse("InstanceType and InstanceTypePreference are both given");
  if (preferences && ultraserver) {
    refuse("InstanceTypePreference and UltraserverType are both given");
  }
  if (ultraserver && reader.Has("InstanceCount")) {
    refuse("InstanceCount is given for UltraServers");
  }
  if (!ultraserver && reader.Has("UltraserverCount")) {
    refuse("UltraserverCount is given without UltraserverType");
  }
  if (!type && !preferences && !ultraserver) {
    reader.Fail(Refuse(kMissingParameter,
                       "the request must have one of InstanceType, InstanceTypePreference.1."
                       "InstanceType and UltraserverType"));
  }
}

// Counts characters of UTF-8: bytes that do not continue a character.
std::size_t CharactersOf(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

struct TagSpecification {
  std::string resource;
  std::vector<Tag> tags = {};
};

TagSpecification ReadSpecification(Reader& specification) {
  TagSpecification read{.resource = specification.Required("ResourceType")};
  if (std::ranges::find(kTaggedResources, read.resource) == kTaggedResources.end()) {
    specification.Fail(Refuse(kInvalidParameterValue, "{} is '{}'; legal are {}",
                              specification.FullName("ResourceType"), read.resource,
                              fmt::join(kTaggedResources, ", ")));
  }
  // Far more than are legal: the answer can then say how many are legal.
  read.tags = specification.Items<Tag>("Tag", 10 * kTagsMost, &ReadTag);
  std::set<std::string_view> keys;
  for (const Tag& tag : read.tags) {
    if (keys.insert(tag.key).second) continue;
    specification.Fail(
        Refuse(kInvalidParameterValue, "the tag '{}' is given twice; once is legal", tag.key));
  }
  return read;
}

// Adds the tags of a specification to `tags`. A tag in both must have the same value.
void AddTags(Reader& reader, const TagSpecification& specification, std::vector<Tag>& tags) {
  for (const Tag& tag : specification.tags) {
    const auto same = std::ranges::find(tags, tag.key, &Tag::key);
    if (same == tags.end()) {
      tags.push_back(tag);
    } else if (same->value != tag.value) {
      reader.Fail(Refuse(kInvalidParameterValue,
                         "the tag '{}' has the values '{}' and '{}'; a Capacity Block and its "
                         "reservation have the same tags here, so one value is legal",
                         tag.key, same->value, tag.value));
    }
  }
}

}  // namespace

Tag ReadTag(Reader& item) {
  Tag tag{.key = item.Required("Key"), .value = item.AnyText("Value").value_or("")};
  if (CharactersOf(tag.key) > kTagKeyCharactersMost) {
    item.Fail(Refuse(kInvalidParameterValue, "{} has {} characters; at most {} are legal",
                     item.FullName("Key"), CharactersOf(tag.key), kTagKeyCharactersMost));
  }
  if (CharactersOf(tag.value) > kTagValueCharactersMost) {
    item.Fail(Refuse(kInvalidParameterValue, "{} has {} characters; at most {} are legal",
                     item.FullName("Value"), CharactersOf(tag.value), kTagValueCharactersMost));
  }
  if (EqualsIgnoringCase(std::string_view(tag.key).substr(0, kReservedTagPrefix.size()),
                         kReservedTagPrefix)) {
    item.Fail(Refuse(kInvalidParameterValue,
                     "{} begins with {}, which is reserved; any other beginning is legal",
                     item.FullName("Key"), kReservedTagPrefix));
  }
  return tag;
}

OfferingSearch ReadOfferingSearch(Reader& reader) {
  CheckCombination(reader);
  OfferingSearch search;
  if (auto type = reader.Text("InstanceType")) search.instance_types = {*std::move(type)};
  std::vector<std::string> preferences =
      reader.Items<std::string>("InstanceTypePreference", kInstanceTypePreferencesMost,
                                [](Reader& item) { return item.Required("InstanceType"); });
  if (!preferences.empty()) search.instance_types = std::move(preferences);
  search.instance_count = reader.Number("InstanceCount", 1, kCountMost);
  search.ultraserver_type = reader.Text("UltraserverType").value_or("");
  search.ultraserver_count = reader.Number("UltraserverCount", 1, kCountMost);
  search.earliest_start = reader.Time("StartDateRange");
  search.latest_end = reader.Time("EndDateRange");
  if (search.earliest_start && search.latest_end && *search.earliest_start >= *search.latest_end) {
    reader.Fail(Refuse(kInvalidParameterCombination,
                       "EndDateRange ({}) must be after StartDateRange ({})",
                       FormatTime(*search.latest_end), FormatTime(*search.earliest_start)));
  }
  search.duration_hours = reader.RequiredNumber("CapacityDurationHours", 1, kHoursMost);
  search.all_availability_zones = reader.Flag("AllAvailabilityZones").value_or(false);
  return search;
}

BlockPurchase ReadBlockPurchase(Reader& reader) {
  return {.offering_id = ReadOfferingId(reader, "CapacityBlockOfferingId", "cb-"),
          .instance_platform = reader.Required("InstancePlatform"),
          .tags = ReadTags(reader),
          .client_token = ReadClientToken(reader)};
}

ExtensionSearch ReadExtensionSearch(Reader& reader) {
  return {.reservation_id = ReadReservationId(reader),
          .duration_hours =
              reader.RequiredNumber("CapacityBlockExtensionDurationHours", 1, kHoursMost)};
}

ExtensionPurchase ReadExtensionPurchase(Reader& reader) {
  return {.offering_id = ReadOfferingId(reader, "CapacityBlockExtensionOfferingId", "cbe-"),
          .reservation_id = ReadReservationId(reader),
          .client_token = ReadClientToken(reader)};
}

std::string ReadReservationId(Reader& reader) {
  std::string id = reader.Required(kReservationIds.name);
  if (!IsEc2Id(id, kReservationIds.prefix)) {
    reader.Fail(MalformedId(kReservationIds.malformed, id, kReservationIds.prefix));
  }
  return id;
}

absl::Status UnknownIds(const IdList& list, const std::set<std::string, std::less<>>& missing) {
  const bool one = missing.size() == 1;
  return Refuse(list.unknown,
                "The {} {} '{}' {} not exist; legal are the ids that are listed when none is asked "
                "for",
                list.kind, one ? "ID" : "IDs", fmt::join(missing, ", "), one ? "does" : "do");
}

std::vector<Tag> ReadTags(Reader& reader) {
  std::vector<Tag> tags;
  std::set<std::string> resources;
  for (const TagSpecification& specification : reader.Items<TagSpecification>(
           "TagSpecification", kTaggedResources.size(), &ReadSpecification)) {
    if (!resources.insert(specification.resource).second) {
      reader.Fail(Refuse(kInvalidParameterValue,
                         "there are two TagSpecification.N of {}; one is legal",
                         specification.resource));
    }
    AddTags(reader, specification, tags);
  }
  if (tags.size() > kTagsMost) {
    reader.Fail(Refuse(kTagLimitExceeded, "there are {} tags; at most {} are legal", tags.size(),
                       kTagsMost));
  }
  return tags;
}

std::vector<std::string> ReadIds(Reader& reader, const IdList& list, std::size_t most) {
  std::vector<std::string> ids = reader.Texts(list.name, most);
  const bool nodes = list.prefix == kInstanceIds.prefix;
  for (const std::string& id : ids) {
    if (nodes ? IsInstanceId(id) : IsEc2Id(id, list.prefix)) continue;
    reader.Fail(MalformedId(list.malformed, id, list.prefix));
  }
  // A list by ids is always complete: EC2 refuses MaxResults with ids, too.
  if (!ids.empty() && reader.Has("MaxResults")) {
    reader.Fail(Refuse(kInvalidParameterCombination,
                       "The parameter {} cannot be used with the parameter MaxResults", list.name));
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace tahoma::controller::ec2
