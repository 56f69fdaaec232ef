#include "controller/ec2/requests.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lib/base/ascii.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

// Above whatever is sold; the service knows the limits and says them.
constexpr std::int64_t kCountMost = 1'000'000;
constexpr std::int64_t kHoursMost = 1'000'000;
constexpr std::size_t kInstanceTypePreferencesMost = 10;
constexpr std::size_t kIdBytesMost = 1024;  // offerings' ids say all of them
constexpr std::size_t kClientTokenBytesMost = 64;
constexpr std::string_view kTaggedResource = "capacity-reservation";
constexpr std::string_view kReservedTagPrefix = "aws:";

bool IsAlphanumeric(char c) {
  const char lower = AsciiLower(c);
  return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
}

bool IsId(std::string_view text) {
  return !text.empty() && text.size() <= kIdBytesMost && std::ranges::all_of(text, [](char c) {
    return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
  });
}

// An id with that prefix: "cr-" and letters and digits.
std::string ReadId(Reader& reader, std::string_view name, std::string_view prefix,
                   const Ec2Code& malformed) {
  std::string id = reader.Required(name);
  const std::string_view rest =
      id.starts_with(prefix) ? std::string_view(id).substr(prefix.size()) : std::string_view();
  if (!IsId(id) || rest.empty() || !std::ranges::all_of(rest, IsAlphanumeric)) {
    reader.Fail(Refuse(malformed, "{} must be {} followed by letters and digits",
                       reader.FullName(name), prefix));
  }
  return id;
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

// Which of the parameters that say what is searched for go together.
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

// Characters of UTF-8: bytes that do not continue one.
std::size_t CharactersOf(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

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

// The tags of one TagSpecification.
std::vector<Tag> ReadSpecification(Reader& specification) {
  const std::string type = specification.Required("ResourceType");
  if (type != kTaggedResource) {
    specification.Fail(Refuse(kInvalidParameterValue, "{} is '{}'; {} is legal",
                              specification.FullName("ResourceType"), type, kTaggedResource));
  }
  // Far more than are legal, so that the answer can say how many are.
  std::vector<Tag> tags = specification.Items<Tag>("Tag", 10 * kTagsMost, &ReadTag);
  if (tags.size() > kTagsMost) {
    specification.Fail(Refuse(kTagLimitExceeded, "there are {} tags; at most {} are legal",
                              tags.size(), kTagsMost));
  }
  std::set<std::string_view> keys;
  for (const Tag& tag : tags) {
    if (keys.insert(tag.key).second) continue;
    specification.Fail(
        Refuse(kInvalidParameterValue, "the tag '{}' is given twice; once is legal", tag.key));
  }
  return tags;
}

}  // namespace

Tag ReadOneTag(Reader& item) { return ReadTag(item); }

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
  return {.offering_id = ReadId(reader, "CapacityBlockOfferingId", "cb-", kOfferingMalformed),
          .instance_platform = reader.Required("InstancePlatform"),
          .tags = ReadTags(reader),
          .client_token = ReadClientToken(reader)};
}

ExtensionSearch ReadExtensionSearch(Reader& reader) {
  return {.reservation_id = ReadId(reader, "CapacityReservationId", "cr-", kReservationMalformed),
          .duration_hours =
              reader.RequiredNumber("CapacityBlockExtensionDurationHours", 1, kHoursMost)};
}

ExtensionPurchase ReadExtensionPurchase(Reader& reader) {
  return {
      .offering_id = ReadId(reader, "CapacityBlockExtensionOfferingId", "cbe-", kOfferingMalformed),
      .reservation_id = ReadId(reader, "CapacityReservationId", "cr-", kReservationMalformed),
      .client_token = ReadClientToken(reader)};
}

std::vector<Tag> ReadTags(Reader& reader) {
  std::vector<std::vector<Tag>> specifications =
      reader.Items<std::vector<Tag>>("TagSpecification", 1, &ReadSpecification);
  return specifications.empty() ? std::vector<Tag>() : std::move(specifications.front());
}

std::vector<std::string> ReadIds(Reader& reader, std::string_view name, std::size_t most,
                                 const Ec2Code& malformed) {
  std::vector<std::string> ids = reader.Texts(name, most);
  for (const std::string& id : ids) {
    if (IsId(id)) continue;
    reader.Fail(Refuse(malformed,
                       "an id in {}.N must have at most {} letters, digits, '-', '_' and '.'",
                       reader.FullName(name), kIdBytesMost));
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace tahoma::controller::ec2
