#include "sim-node/emulator/collective/schedule/parts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string_view>

#include "lib/base/digest.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

template <typename List>
std::string NumbersText(const List& list) {
  return fmt::format("{}", fmt::join(list, ","));
}

// The member of each rank.
std::vector<Member> MembersOfRanks(const std::vector<Member>& members) {
  std::vector<Member> of_ranks;
  for (const Member& member : members) {
    of_ranks.insert(of_ranks.end(), static_cast<std::size_t>(std::max(member.ranks, 0)), member);
  }
  return of_ranks;
}

absl::Status CheckGroups(const std::vector<std::vector<int>>& groups, int ranks) {
  std::vector<bool> seen(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].empty()) return InvalidArgument("replica group {} is empty", i);
    if (groups[i].size() != groups[0].size()) {
      return InvalidArgument("replica group {} has {} ranks, replica group 0 has {}", i,
                             groups[i].size(), groups[0].size());
    }
    for (const int rank : groups[i]) {
      if (rank < 0 || rank >= ranks) {
        return InvalidArgument("replica group {} names rank {}; expected 0 to {}", i, rank,
                               ranks - 1);
      }
      if (seen[static_cast<std::size_t>(rank)]) {
        return InvalidArgument("rank {} is twice in the replica groups", rank);
      }
      seen[static_cast<std::size_t>(rank)] = true;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Member>> MembersOfGroup(const std::vector<int>& group,
                                                   const std::vector<Member>& of_ranks) {
  std::vector<Member> members;
  std::set<torus::ChipIndex> seen;
  for (const int rank : group) {
    const Member& whole = of_ranks[static_cast<std::size_t>(rank)];
    if (!members.empty() && members.back().chip == whole.chip) {
      members.back() = PartOf(whole, members.back().ranks + 1);
      continue;
    }
    if (!seen.insert(whole.chip).second) {
      return InvalidArgument(
          "rank {} is apart from the other ranks of its chip in its replica group; a chip's ranks "
          "must follow one another",
          rank);
    }
    members.push_back(PartOf(whole, 1));
  }
  return members;
}

absl::Status CheckBelongs(const Request& request, const Division& division) {
  if (!division.counts.empty() && request.operation != Operation::kAllToAll) {
    return InvalidArgument("{} has no counts; expected alltoallv", Name(request.operation));
  }
  if (!division.pairs.empty() && request.operation != Operation::kPermute) {
    return InvalidArgument("{} has no pairs of ranks; expected permute", Name(request.operation));
  }
  if (!division.pairs.empty() && !division.groups.empty()) {
    return InvalidArgument("pairs of ranks and replica groups exclude each other");
  }
  return absl::OkStatus();
}

}  // namespace

std::string Division::ToString() const {
  if (empty()) return "";
  std::string text;
  for (const std::vector<int>& group : groups) text += "g" + NumbersText(group);
  for (const VariableCounts& one : counts) {
    text += "c" + NumbersText(one.send_counts) + ";" + NumbersText(one.send_displacements) + ";" +
            NumbersText(one.receive_counts) + ";" + NumbersText(one.receive_displacements);
  }
  for (const auto& [from, to] : pairs) text += fmt::format("p{},{}", from, to);
  return ", divided as " + Sha256Hex(text).substr(0, 16);
}

absl::StatusOr<std::vector<Part>> PartsOf(const Request& request, const Division& division,
                                          const std::vector<Member>& members) {
  TAHOMA_RETURN_IF_ERROR(CheckBelongs(request, division));
  if (division.empty()) return std::vector<Part>{{.members = members, .request = request}};
  const std::vector<Member> of_ranks = MembersOfRanks(members);
  const auto ranks = static_cast<int>(of_ranks.size());
  TAHOMA_RETURN_IF_ERROR(CheckGroups(division.groups, ranks));
  if (division.counts.size() > 1 && division.counts.size() != of_ranks.size()) {
    return InvalidArgument("counts for {} ranks; expected one entry for all, or {}, one for each",
                           division.counts.size(), ranks);
  }
  std::vector<std::vector<int>> groups = division.groups;
  if (groups.empty()) {
    groups.emplace_back(of_ranks.size());
    std::iota(groups[0].begin(), groups[0].end(), 0);
  }
  const std::uint64_t elements = request.bytes / Size(request.type);
  std::vector<Part> parts;
  for (const std::vector<int>& group : groups) {
    Part part{.members = {}, .request = request};
    TAHOMA_ASSIGN_OR_RETURN(part.members, MembersOfGroup(group, of_ranks));
    if (!division.counts.empty()) {
      std::vector<std::size_t> entries;
      for (const int rank : group) {
        entries.push_back(division.counts.size() == 1 ? 0 : static_cast<std::size_t>(rank));
      }
      TAHOMA_ASSIGN_OR_RETURN(auto blocks, BlocksOf(division.counts, entries, elements));
      part.request.blocks = std::make_shared<const std::vector<RankBlock>>(std::move(blocks));
    } else if (!division.pairs.empty()) {
      TAHOMA_ASSIGN_OR_RETURN(auto blocks, BlocksOf(division.pairs, ranks, elements));
      part.request.blocks = std::make_shared<const std::vector<RankBlock>>(std::move(blocks));
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace tahoma::sim
