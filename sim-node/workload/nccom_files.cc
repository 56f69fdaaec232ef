#include "sim-node/workload/nccom_files.h"

#include <limits>
#include <string>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

constexpr std::size_t kMaxRanks = 8 * 131'072;  // of the largest gang
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

// Reads a list of whole numbers from 0 on.
template <typename Number>
absl::StatusOr<std::vector<Number>> ReadNumbers(const Json& list, std::string_view where,
                                                std::int64_t max) {
  if (!list.is_array()) return InvalidArgument("{} is not a list of numbers", where);
  std::vector<Number> numbers;
  for (const Json& item : list) {
    if (!item.is_number_integer() || item < 0 || item > max) {
      return InvalidArgument("{}[{}] is {}; expected a whole number from 0 to {}", where,
                             numbers.size(), item.dump(), max);
    }
    numbers.push_back(item.get<Number>());
  }
  return numbers;
}

// Returns the only entry of the list under `key`: a list of lists of ranks.
absl::StatusOr<RankGroups> ReadLists(std::string_view text, std::string_view file,
                                     std::string_view key) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(text, file));
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (found == json.end() || !found->is_array() || found->size() != 1 || !(*found)[0].is_array() ||
      (*found)[0].empty()) {
    return InvalidArgument("{}: expected {{\"{}\": [[[0, 1], [2, 3]]]}}", file, key);
  }
  RankGroups lists;
  for (const Json& item : (*found)[0]) {
    const std::string where = fmt::format("{}: {}[0][{}]", file, key, lists.size());
    TAHOMA_ASSIGN_OR_RETURN(auto ranks, ReadNumbers<int>(item, where, kMaxRanks - 1));
    lists.push_back(std::move(ranks));
  }
  return lists;
}

}  // namespace

absl::StatusOr<RankGroups> ParseReplicaGroups(std::string_view text) {
  return ReadLists(text, "replica groups", "replica_groups");
}

absl::StatusOr<RankPairs> ParseSourceTargetPairs(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(const RankGroups lists,
                          ReadLists(text, "source-target pairs", "src_target_pairs"));
  RankPairs pairs;
  for (const std::vector<int>& pair : lists) {
    if (pair.size() != 2) {
      return InvalidArgument(
          "source-target pairs: src_target_pairs[0][{}] has {} ranks; expected a source and a "
          "target",
          pairs.size(), pair.size());
    }
    pairs.emplace_back(pair[0], pair[1]);
  }
  return pairs;
}

absl::StatusOr<std::vector<CountsEntry>> ParseCounts(std::string_view text) {
  constexpr std::string_view kFile = "metadata of counts";
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(text, kFile));
  wire::Fields fields(json, std::string(kFile));
  const Json& list = fields.Array("metadata", kMaxRanks);
  fields.OnlyKnown();
  TAHOMA_RETURN_IF_ERROR(fields.status());
  if (list.empty()) {
    return InvalidArgument("{}: expected {{\"metadata\": [{{\"send_counts\": [512, 1024]}}]}}",
                           kFile);
  }
  std::vector<CountsEntry> entries;
  for (const Json& item : list) {
    const std::string where = fmt::format("{}.metadata[{}]", kFile, entries.size());
    wire::Fields entry(item, where);
    CountsEntry& read = entries.emplace_back();
    for (const auto& [key, numbers] :
         {std::pair{"send_counts", &read.send_counts}, std::pair{"send_displs", &read.send_displs},
          std::pair{"recv_counts", &read.recv_counts},
          std::pair{"recv_displs", &read.recv_displs}}) {
      auto of_key =
          ReadNumbers<std::uint64_t>(entry.Array(key, kMaxRanks), entry.Path(key), kMaxElements);
      entry.Fail(of_key.status());
      if (of_key.ok()) *numbers = *std::move(of_key);
    }
    if (read.send_counts.empty()) {
      entry.Fail(InvalidArgument("{} is missing; expected a number for each rank",
                                 entry.Path("send_counts")));
    }
    entry.OnlyKnown();
    TAHOMA_RETURN_IF_ERROR(entry.status());
  }
  return entries;
}

absl::StatusOr<RankGroups> DataParallelGroups(int ranks, int size) {
  if (ranks % size != 0) {
    return InvalidArgument("--data-parallel-dimension is {}; expected a divisor of the {} ranks",
                           size, ranks);
  }
  const int distance = ranks / size;
  RankGroups groups(static_cast<std::size_t>(distance));
  for (int rank = 0; rank < ranks; ++rank) {
    groups[static_cast<std::size_t>(rank % distance)].push_back(rank);
  }
  return groups;
}

}  // namespace tahoma::sim
