// The ranks that wait for the rest of their communicators, and which node may speak for which rank.
//
// Nobody tells a sim-node where the pods of a communicator run. The home of a rank is therefore the
// node whose join holds the rank's place here. A peer is believed only about ranks whose home it
// is:
//
// - A join names chips of the joining node, and its own place (CheckHome). A peer is known by the
//   name in its certificate (peer_link.h); two peers never have the same place.
// - The first join holds the place until its node ends the join or is lost. A join of another node
//   waits behind the holder and counts for nothing; when the place becomes free, it takes the
//   place. A moved pod joins again like this when the end of its first join comes late.
// - A node ends only its own joins.
// - Only a node that holds a place of a communicator may refuse the communicator: ranks with
//   unequal arguments never form a group. The refusal ends the join that it names (Standing).
//
// A free place goes to the first join. A peer that knows the id of a communicator with a free rank
// can therefore take the rank, and then disagree; docs/security.md says so.
//
// Scope: the ranks that wait. communicator.h forms groups.
//
// Thread safety: none; the owner locks.

#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim-node/participants/participant.h"
#include "sim-node/serve/gang_fabric.h"

namespace tahoma::sim {

// Nodes of this node's UltraServer are numbered by their places. Nodes reached over EFA are
// numbered from here on; every node assigns its own numbers.
inline constexpr int kFirstEfaNode = hw::kUltraServerNodes;

// A rank that has joined, on this node or another.
struct Joiner {
  int node = 0;
  std::uint64_t number = 0;     // counts the joins of the node: no two joins are equal
  int world_size = 0;           // pods
  std::vector<Member> members;  // the rank's chips, numbered within the node's domain
  NodePlace place{};

  // Names the joiner's node in messages: "node 2" in this UltraServer, "node n5" over EFA.
  std::string Node() const;
};

class WaitingRanks {
 public:
  struct Limits {
    std::size_t of_node = 1024;     // joins of one node
    std::size_t of_others = 32768;  // joins of all other nodes together
  };
  using Ranks = std::map<int, Joiner>;
  struct JoinId {
    int node = 0;
    std::uint64_t number = 0;
  };
  // The state of a join: never seen, ended, waiting behind another join, holding the place.
  enum class Standing : std::uint8_t { kUnknown, kEnded, kBehind, kHolds };

  WaitingRanks(int own_node, Limits limits) : own_node_(own_node), limits_(limits) {}

  // Checks that a peer's join names the peer's own chips and place. kPermissionDenied for chips of
  // another node; for a name other than `proven`, the name in the link's certificate (empty when
  // the link proves none); over EFA also for a place that the peer has changed or another peer has.
  absl::Status CheckHome(const Joiner& joiner, const std::string& proven) const;
  // Checks whether one more join of this node may wait; kResourceExhausted when not.
  absl::Status CheckRoom(int node, const std::string& comm_id, int rank) const;
  // Adds a join that passed CheckRoom. The join replaces an earlier join of the same node for the
  // rank. kPermissionDenied when another node holds the place; the join then waits behind the
  // holder.
  absl::Status Add(const std::string& comm_id, int rank, Joiner joiner);

  // Returns how the join stands.
  Standing Of(const std::string& comm_id, int rank, JoinId id) const;
  // Ends the join, if the join waits. The first join behind it takes the place; returns whether
  // there was such a join.
  bool End(const std::string& comm_id, int rank, JoinId id);
  // Forgets all joins of a lost node. Returns the communicators in which another join took a place.
  std::vector<std::string> EndAllOf(int node);
  // Remembers that the node has announced the join, or the end of the join.
  void Note(JoinId id);
  bool Noted(JoinId id) const;

  // Returns the ranks that hold a place of the communicator.
  const Ranks& Holders(const std::string& comm_id) const;
  // Removes the holders, because they have formed a group. Joins behind them take the places.
  void RemoveHolders(const std::string& comm_id);
  const std::map<std::string, Ranks>& all() const { return holders_; }

 private:
  using Place = std::pair<std::string, int>;  // comm id and rank
  // Gives a free place to the first join behind the place. Returns whether there was such a join.
  bool Promote(const std::string& comm_id, int rank);

  const int own_node_;
  const Limits limits_;
  std::map<std::string, Ranks> holders_;          // by comm id
  std::map<Place, std::vector<Joiner>> behind_;   // in order of arrival
  std::map<int, std::set<std::uint64_t>> joins_;  // announced, by node
  // over EFA: domain and place in the domain, by node
  std::map<int, std::pair<std::string, int>> at_;
};

}  // namespace tahoma::sim
