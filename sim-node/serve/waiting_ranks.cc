#include "sim-node/serve/waiting_ranks.h"

#include <algorithm>

#include "lib/base/status.h"
#include "lib/hw/catalogue.h"

namespace tahoma::sim {
namespace {

// How many joins of one node are remembered: four times as many as may wait by default.
constexpr std::size_t kMaxJoinsSeen = 4096;

}  // namespace

std::string Joiner::Node() const {
  return node < kFirstEfaNode ? fmt::format("node {}", node) : "node " + place.name;
}

absl::Status WaitingRanks::CheckHome(const Joiner& joiner, const std::string& proven) const {
  const NodePlace& place = joiner.place;
  if (!proven.empty() && !place.name.empty() && place.name != proven) {
    return PermissionDenied("{} joins in the name of node \"{}\"", proven, place.name);
  }
  const int chips = torus::kInstanceShape.chip_count();
  for (const Member& member : joiner.members) {
    if (member.chip.value() / chips == place.node_id) continue;
    return PermissionDenied("{} joins with chip {}, which is not its own", joiner.Node(),
                            member.chip.value());
  }
  if (joiner.node < kFirstEfaNode) return absl::OkStatus();
  const std::pair<std::string, int> at(place.Domain(), place.node_id);
  for (const auto& [node, other] : at_) {
    if ((node == joiner.node) == (other == at)) continue;
    return PermissionDenied(
        "{} joins from place {} of {}, {}", joiner.Node(), at.second, at.first,
        node == joiner.node ? "and was elsewhere before" : "where another peer is");
  }
  return absl::OkStatus();
}

absl::Status WaitingRanks::CheckRoom(int node, const std::string& comm_id, int rank) const {
  std::size_t own = 0;
  std::size_t others = 0;
  bool anew = false;
  const auto count = [&](const std::string& id, int other, const Joiner& joiner) {
    anew = anew || (joiner.node == node && id == comm_id && other == rank);
    if (joiner.node == node) ++own;
    if (joiner.node != own_node_) ++others;
  };
  for (const auto& [id, ranks] : holders_) {
    for (const auto& [other, joiner] : ranks) count(id, other, joiner);
  }
  for (const auto& [place, joiners] : behind_) {
    for (const Joiner& joiner : joiners) count(place.first, place.second, joiner);
  }
  if (anew) return absl::OkStatus();
  if (own >= limits_.of_node) {
    return ResourceExhausted(
        "rank {} of communicator \"{}\": pods of node {} wait for others in {} places already, and "
        "more may not",
        rank, comm_id, node, own);
  }
  if (node != own_node_ && others >= limits_.of_others) {
    return ResourceExhausted(
        "rank {} of communicator \"{}\": pods of other nodes wait in {} places already, and more "
        "may not",
        rank, comm_id, others);
  }
  return absl::OkStatus();
}

absl::Status WaitingRanks::Add(const std::string& comm_id, int rank, Joiner joiner) {
  if (joiner.node >= kFirstEfaNode) {
    at_[joiner.node] = {joiner.place.Domain(), joiner.place.node_id};
  }
  Ranks& ranks = holders_[comm_id];
  const auto holder = ranks.find(rank);
  if (holder == ranks.end() || holder->second.node == joiner.node) {
    ranks.insert_or_assign(rank, std::move(joiner));
    return absl::OkStatus();
  }
  absl::Status denied = PermissionDenied(
      "communicator \"{}\": {} joins as rank {}, whose place {} has; it waits until that is free",
      comm_id, joiner.Node(), rank, holder->second.Node());
  std::vector<Joiner>& behind = behind_[{comm_id, rank}];
  std::erase_if(behind, [&](const Joiner& other) { return other.node == joiner.node; });
  behind.push_back(std::move(joiner));
  return denied;
}

WaitingRanks::Standing WaitingRanks::Of(const std::string& comm_id, int rank, JoinId id) const {
  const auto same = [&](const Joiner& joiner) {
    return joiner.node == id.node && joiner.number == id.number;
  };
  const Ranks& ranks = Holders(comm_id);
  const auto holder = ranks.find(rank);
  if (holder != ranks.end() && same(holder->second)) return Standing::kHolds;
  const auto behind = behind_.find({comm_id, rank});
  if (behind != behind_.end() && std::ranges::any_of(behind->second, same)) {
    return Standing::kBehind;
  }
  return Noted(id) ? Standing::kEnded : Standing::kUnknown;
}

bool WaitingRanks::End(const std::string& comm_id, int rank, JoinId id) {
  const Standing standing = Of(comm_id, rank, id);
  if (standing == Standing::kBehind) {
    const auto behind = behind_.find({comm_id, rank});
    std::erase_if(behind->second, [&](const Joiner& joiner) { return joiner.node == id.node; });
    if (behind->second.empty()) behind_.erase(behind);
  }
  if (standing != Standing::kHolds) return false;
  const auto ranks = holders_.find(comm_id);
  ranks->second.erase(rank);
  if (ranks->second.empty()) holders_.erase(ranks);
  return Promote(comm_id, rank);
}

std::vector<std::string> WaitingRanks::EndAllOf(int node) {
  joins_.erase(node);
  at_.erase(node);
  for (auto& [place, joiners] : behind_) {
    std::erase_if(joiners, [&](const Joiner& joiner) { return joiner.node == node; });
  }
  std::erase_if(behind_, [](const auto& entry) { return entry.second.empty(); });
  std::vector<Place> free;
  for (const auto& [comm_id, ranks] : holders_) {
    for (const auto& [rank, joiner] : ranks) {
      if (joiner.node == node) free.emplace_back(comm_id, rank);
    }
  }
  std::vector<std::string> changed;
  for (const auto& [comm_id, rank] : free) {
    const auto ranks = holders_.find(comm_id);
    ranks->second.erase(rank);
    if (ranks->second.empty()) holders_.erase(ranks);
    if (Promote(comm_id, rank)) changed.push_back(comm_id);
  }
  return changed;
}

bool WaitingRanks::Promote(const std::string& comm_id, int rank) {
  const auto behind = behind_.find({comm_id, rank});
  if (behind == behind_.end()) return false;
  holders_[comm_id].emplace(rank, std::move(behind->second.front()));
  behind->second.erase(behind->second.begin());
  if (behind->second.empty()) behind_.erase(behind);
  return true;
}

void WaitingRanks::Note(JoinId id) {
  std::set<std::uint64_t>& seen = joins_[id.node];
  seen.insert(id.number);
  if (seen.size() > kMaxJoinsSeen) seen.erase(seen.begin());
}

bool WaitingRanks::Noted(JoinId id) const {
  const auto found = joins_.find(id.node);
  return found != joins_.end() && found->second.contains(id.number);
}

const WaitingRanks::Ranks& WaitingRanks::Holders(const std::string& comm_id) const {
  static const Ranks kNone;
  const auto found = holders_.find(comm_id);
  return found == holders_.end() ? kNone : found->second;
}

void WaitingRanks::RemoveHolders(const std::string& comm_id) {
  const auto found = holders_.find(comm_id);
  if (found == holders_.end()) return;
  const Ranks taken = std::move(found->second);
  holders_.erase(found);
  for (const auto& [rank, joiner] : taken) Promote(comm_id, rank);
}

}  // namespace tahoma::sim
