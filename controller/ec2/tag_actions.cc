#include "controller/ec2/tag_actions.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/ec2/error.h"
#include "controller/ec2/filter.h"
#include "controller/ec2/page.h"
#include "controller/ec2/requests.h"
#include "controller/ec2/tag_change.h"
#include "controller/ec2/tree.h"
#include "controller/reserve/ec2_id.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace tahoma::controller::ec2 {
namespace {

constexpr std::size_t kRemovalsMost = 1000;
constexpr std::size_t kQuotedMost = 64;   // of a text that is no id
constexpr std::size_t kTagRowsLeast = 5;  // EC2 takes no smaller MaxResults of DescribeTags

constexpr std::array kTagFilters = {
    TreeFilter{"key", "key"}, TreeFilter{"resource-id", "resourceId"},
    TreeFilter{"resource-type", "resourceType"}, TreeFilter{"value", "value"}};

// The reservations and blocks that a request names.
struct Tagged {
  std::vector<std::string> reservations;  // sorted, as Selection has them
  std::vector<std::string> blocks;
};

Tagged ReadTagged(Reader& reader) {
  if (!reader.Has("ResourceId")) {
    reader.Fail(Refuse(kMissingParameter, "the request must have ResourceId.1"));
  }
  Tagged tagged;
  std::vector<std::string> ids = reader.Texts("ResourceId", kIdsMost);
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (std::string& id : ids) {
    const bool reservation = id.starts_with(kReservationIds.prefix);
    const IdList& list = reservation ? kReservationIds : kBlockIds;
    if (!id.starts_with(list.prefix)) {
      reader.Fail(Refuse(kInvalidId,
                         "The ID '{}' is not valid; legal are those of Capacity Reservations, "
                         "{}…, and of Capacity Blocks, {}…",
                         CutUtf8(id, kQuotedMost), kReservationIds.prefix, kBlockIds.prefix));
    } else if (!IsEc2Id(id, list.prefix)) {
      reader.Fail(MalformedId(list.malformed, id, list.prefix));
    } else {
      (reservation ? tagged.reservations : tagged.blocks).push_back(std::move(id));
    }
  }
  return tagged;
}

// Returns the caller's reservations that are named, directly or by their blocks. `change` must be
// possible for each.
absl::StatusOr<std::vector<std::string>> ReservationsOf(const Call& call, const Tagged& tagged,
                                                        const TagChange& change) {
  std::set<std::string> found(tagged.reservations.begin(), tagged.reservations.end());
  if (!tagged.blocks.empty()) {
    std::set<std::string, std::less<>> missing(tagged.blocks.begin(), tagged.blocks.end());
    TAHOMA_RETURN_IF_ERROR(call.service.VisitBlocks(
        call.caller, {.ids = tagged.blocks}, [&](std::string_view, const Ec2Block& block) {
          missing.erase(block.id);
          found.insert(block.reservation_ids.begin(), block.reservation_ids.end());
          return true;
        }));
    if (!missing.empty()) return UnknownIds(kBlockIds, missing);
  }
  std::set<std::string, std::less<>> missing(found.begin(), found.end());
  absl::Status possible;
  TAHOMA_RETURN_IF_ERROR(
      call.service.VisitReservations(call.caller, {.ids = {found.begin(), found.end()}},
                                     [&](std::string_view, const Reservation& reservation) {
                                       missing.erase(reservation.id);
                                       possible = ApplyTagChange(reservation.tags, change).status();
                                       return possible.ok();
                                     }));
  TAHOMA_RETURN_IF_ERROR(possible);
  if (!missing.empty()) return UnknownIds(kReservationIds, missing);
  return std::vector<std::string>(found.begin(), found.end());
}

// A dry run finds out everything that the call would, but changes nothing.
absl::StatusOr<std::string> Change(const Call& call, const Tagged& tagged,
                                   const TagChange& change) {
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<std::string> reservations,
                          ReservationsOf(call, tagged, change));
  if (!call.dry_run) {
    TAHOMA_RETURN_IF_ERROR(call.service.ChangeTags(call.caller, reservations, change));
  }
  return TreeAnswer(call.head, {{"return", true}});
}

void CheckKeys(Reader& reader, const std::vector<std::string_view>& keys) {
  std::set<std::string_view> seen;
  for (const std::string_view key : keys) {
    if (seen.insert(key).second) continue;
    reader.Fail(Refuse(kInvalidParameterValue, "the tag '{}' is given twice; once is legal", key));
  }
}

// Offers a row for each tag of a resource, in the order of keys. False when the page is full.
bool OfferTags(const std::string& id, std::string_view type, std::vector<Tag> tags,
               TreePage& page) {
  std::ranges::sort(tags, {}, &Tag::key);
  return std::ranges::all_of(tags, [&](const Tag& tag) {
    return page.Offer(
        fmt::format("{}/{}", id, tag.key),
        {{"resourceId", id}, {"resourceType", type}, {"key", tag.key}, {"value", tag.value}});
  });
}

}  // namespace

absl::StatusOr<std::string> CreateTags(const Call& call) {
  Reader& reader = call.reader;
  const Tagged tagged = ReadTagged(reader);
  if (!reader.Has("Tag")) {
    reader.Fail(Refuse(kMissingParameter, "the request must have Tag.1.Key"));
  }
  // Far more than are legal: the answer can then say how many are legal.
  const TagChange change{.set = reader.Items<Tag>("Tag", 10 * kTagsMost, &ReadTag)};
  std::vector<std::string_view> keys;
  for (const Tag& tag : change.set) keys.push_back(tag.key);
  CheckKeys(reader, keys);
  return Change(call, tagged, change);
}

absl::StatusOr<std::string> DeleteTags(const Call& call) {
  Reader& reader = call.reader;
  const Tagged tagged = ReadTagged(reader);
  const auto read = [](Reader& item) {
    const bool has_value = item.Has("Value");
    const Tag tag = ReadTag(item);
    return TagRemoval{.key = tag.key, .value = has_value ? std::optional(tag.value) : std::nullopt};
  };
  const bool all = !reader.Has("Tag");
  TagChange change{.remove = reader.Items<TagRemoval>("Tag", kRemovalsMost, read),
                   .remove_all = all};
  return Change(call, tagged, change);
}

absl::StatusOr<std::string> DescribeTags(const Call& call) {
  const std::vector<Filter> filters = ReadFilters(call.reader, NamesOf(kTagFilters), true);
  const PageRequest request =
      ReadPage(call.reader, call.binding, kPageRowsMost, kPageRowsMost, kTagRowsLeast);
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  TreePage page(request, filters, kTagFilters);
  // The ids of blocks sort before the ids of reservations.
  bool has_room = true;
  TAHOMA_RETURN_IF_ERROR(
      call.service.VisitBlocks(call.caller, {}, [&](std::string_view, const Ec2Block& block) {
        has_room = OfferTags(block.id, "capacity-block", block.tags, page);
        return has_room;
      }));
  if (has_room) {
    TAHOMA_RETURN_IF_ERROR(call.service.VisitReservations(
        call.caller, {}, [&](std::string_view, const Reservation& reservation) {
          return OfferTags(reservation.id, "capacity-reservation", reservation.tags, page);
        }));
  }
  return page.Answer(call.head, "tagSet");
}

}  // namespace tahoma::controller::ec2
