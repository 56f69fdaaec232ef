// The ranks that wait for the others of their communicators, and who may say what about them.
//
// Nobody tells a sim-node where the pods of a communicator run, so a rank's home is the node whose
// join holds the rank's place here. A peer is believed only about what it is the home of:
//
//   - A join names a node's own chips and its own place (CheckHome). A peer is known by the name
//     that its certificate proves (peer_link.h), and two peers never have one place.
//   - The join that came first holds the place, until its node ends it or is lost. A join of
//     another node waits behind it: it counts for nothing until the place is free, and then takes
//     it, as when a pod was moved and the news of its end came late.
//   - A node ends joins of its own only.
//   - Only a node that holds a place of a communicator may refuse it for the others: it is one of
//     those that can never form a group. Its refusal ends the join that it names (Standing).
//
// A place that is free is whoever's comes first. So a peer that knows the id of a communicator with
// a free rank can take it, and then disagree; docs/security.md says so.
//
// Scope: who waits. communicator.h forms groups of them.
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

// Nodes of this node's UltraServer are numbered by their places. Nodes that are reached over EFA
// have numbers from here on; every node assigns its own.
inline constexpr int kFirstEfaNode = hw::kUltraServerNodes;

// A rank that has joined, on this node or another.
struct Joiner {
  int node = 0;
  std::uint64_t number = 0;     // counts the joins of its node, so that each join differs
  int world_size = 0;           // pods
  std::vector<Member> members;  // its chips, numbered within the node's domain
  NodePlace place{};

  // Names its node in messages: "node 2" in this UltraServer, "node n5" over EFA.
  std::string Node() const;
};

class WaitingRanks {
 public:
  struct Limits {
    std::size_t of_node = 1024;     // joins of one node
    std::size_t of_others = 32768;  // joins of all nodes but this one
  };
  using Ranks = std::map<int, Joiner>;
  struct JoinId {
    int node = 0;
    std::uint64_t number = 0;
  };
  // How a join stands here: it never came, it has ended, it waits behind another, it has the place.
  enum class Standing : std::uint8_t { kUnknown, kEnded, kBehind, kHolds };

  WaitingRanks(int own_node, Limits limits) : own_node_(own_node), limits_(limits) {}

  // Checks that a peer's join is of its own chips in its own place. kPermissionDenied for chips of
  // another node, for a name that is not the one its link proves (`proven`, empty when unknown),
  // and over EFA for a place that it has changed or that another peer has.
  absl::Status CheckHome(const Joiner& joiner, const std::string& proven) const;
  // Checks whether one more join of that node may wait; kResourceExhausted when it may not.
  absl::Status CheckRoom(int node, const std::string& comm_id, int rank) const;
  // Adds a join, which CheckRoom allows. It replaces an earlier one of its node for that rank.
  // kPermissionDenied when another node holds the place; the join then waits behind that one.
  absl::Status Add(const std::string& comm_id, int rank, Joiner joiner);

  // Returns how the join stands.
  Standing Of(const std::string& comm_id, int rank, JoinId id) const;
  // Ends the join, if it waits. Who is first behind it takes its place: true when there was one.
  bool End(const std::string& comm_id, int rank, JoinId id);
  // Forgets all that a lost node said. Returns the communicators in which another took a place.
  std::vector<std::string> EndAllOf(int node);
  // Remembers that the node has announced the join, or its end.
  void Note(JoinId id);
  bool Noted(JoinId id) const;

  // Returns the ranks of the communicator that hold a place.
  const Ranks& Holders(const std::string& comm_id) const;
  // Takes them out, as when they have formed a group. Those behind them have the places then.
  void Take(const std::string& comm_id);
  const std::map<std::string, Ranks>& all() const { return holders_; }

 private:
  using Place = std::pair<std::string, int>;  // comm id and rank
  // Gives a free place to the first behind it, if any. Returns whether there was one.
  bool Promote(const std::string& comm_id, int rank);

  const int own_node_;
  const Limits limits_;
  std::map<std::string, Ranks> holders_;           // by comm id
  std::map<Place, std::vector<Joiner>> behind_;    // in the order in which they came
  std::map<int, std::set<std::uint64_t>> joins_;   // announced, by node
  std::map<int, std::pair<std::string, int>> at_;  // over EFA: domain and place in it, by node
};

}  // namespace tahoma::sim
