// The answers of the admin API: JSON, problems, and pages of long lists.
//
// Every page of a list is read with the `next` of the one before as its `from`.
//
// Scope: the form of answers.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "controller/model/persistent.h"
#include "lib/base/json_fwd.h"
#include "lib/rest/message.h"

namespace tahoma::controller {

// The rows of one answer.
inline constexpr std::size_t kRowsMost = 1000;

rest::Response Answer(int status, const nlohmann::ordered_json& body);
// The problem of an error; of a refusal with EC2's code for it.
rest::Response Refused(const absl::Status& status);

template <typename Place, typename Value>
struct PageOfRows {
  std::map<Place, Value> rows;
  std::optional<Place> next;  // the first row of the next page
};

// Returns the rows of a map without order, from `from` on. `place_of` makes the place by which rows
// are sorted of the map's own key, `keep` says which rows there are. Looks at every row once:
// 100,000 take a few milliseconds.
template <typename Place, typename K, typename V, typename PlaceOf, typename Keep>
PageOfRows<Place, V> PageOf(const PersistentMap<K, V>& map, const Place& from,
                            const PlaceOf& place_of, const Keep& keep) {
  PageOfRows<Place, V> page;
  auto& rows = page.rows;
  map.ForEach([&](const K& key, const V& value) {
    Place place = place_of(key);
    if (place < from || (rows.size() > kRowsMost && std::prev(rows.end())->first < place)) return;
    if (!keep(value)) return;
    rows.insert_or_assign(std::move(place), value);
    if (rows.size() > kRowsMost + 1) rows.erase(std::prev(rows.end()));
  });
  if (rows.size() > kRowsMost) {
    page.next = std::prev(rows.end())->first;
    rows.erase(std::prev(rows.end()));
  }
  return page;
}
template <typename Place, typename K, typename V, typename PlaceOf>
PageOfRows<Place, V> PageOf(const PersistentMap<K, V>& map, const Place& from,
                            const PlaceOf& place_of) {
  return PageOf(map, from, place_of, [](const V&) { return true; });
}

}  // namespace tahoma::controller
