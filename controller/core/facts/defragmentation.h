// Defragmentations as objects of the Kubernetes API: gangs that run move, so that a place comes
// free.
//
//   TAHOMA_ASSIGN_OR_RETURN(const auto fact, ParseDefragmentation(object));
//   if (!fact->spec_error.empty()) Say(fact->spec_error);
//
// The status is read, too: it is where the plan and the progress survive a restart. The rules are
// those of charts/tahoma/crds/tahoma.dev_defragmentations.yaml; an object that breaks one is still
// read, and `spec_error` names the first broken rule.
//
// Scope: values. core/queue/moves.h makes the moves, publish/render_defragmentation.h writes the
// status.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/model/gang_rules.h"
#include "controller/model/ids.h"
#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/resource.h"

namespace tahoma::controller {

inline const kube::Resource kDefragmentations{
    .group = "tahoma.dev", .version = "v1alpha1", .plural = "defragmentations"};

// The wish of whoever made the object. One of shape, ultra_servers and for_gang is set.
struct DefragmentationSpec {
  static constexpr std::int64_t kMovesMost = 64;
  static constexpr std::int64_t kPerHourMost = 3600;
  static constexpr std::int64_t kSlicesMost = 64;

  std::string shape = {};  // a place for so many boxes of the shape
  std::int64_t slices = 1;
  std::optional<std::int64_t> ultra_servers = {};  // so many more that are free
  std::optional<GangKey> for_gang = {};            // a place for a gang that waits
  std::int64_t max_moves = 10;
  std::int64_t moves_per_hour = 6;
  bool apply = false;                  // false: a dry run
  bool abort = false;                  // moves that have not begun are not begun
  std::chrono::seconds keep_for{600};  // how long the place is kept when it is free

  friend bool operator==(const DefragmentationSpec&, const DefragmentationSpec&) = default;
};

enum class DefragmentationPhase : std::uint8_t {
  kNone,     // not looked at yet
  kTurn,     // another one is under way
  kPlanned,  // a dry run: nothing moves
  kMoving,
  kDone,  // the place is free, or was taken by the gang
  kAborted,
  kFailed,
};
enum class MoveState : std::uint8_t {
  kPlanned,
  kMoving,  // the run ends, or has ended and its next pods wait for the place
  kMoved,
  kGone,       // the run ended, or the gang was deleted, before or during the move
  kFailed,     // the gang is not bound again in time
  kCancelled,  // not begun
};
std::string_view ToString(DefragmentationPhase phase);  // "" for kNone
std::string_view ToString(MoveState state);
// Whether nothing follows the phase but the end of keeping the place.
bool IsOver(DefragmentationPhase phase);

// Whole chips of a node.
struct NodeChips {
  std::string node;
  std::uint16_t chips = 0;

  friend bool operator==(const NodeChips&, const NodeChips&) = default;
};

struct GangMove {
  GangKey gang;
  std::uint64_t run = 0;  // the run that ends
  std::string from;       // for people: "us-0 4x4x2+0,0,0"
  std::string to;
  std::vector<NodeChips> chips;  // the place that is kept for the gang
  std::int64_t lost = 0;         // chip-seconds
  MoveState state = MoveState::kPlanned;
  std::optional<WallTime> start = {};
  std::optional<WallTime> end = {};

  friend bool operator==(const GangMove&, const GangMove&) = default;
};

struct DefragmentationStatus {
  std::int64_t observed_generation = 0;
  DefragmentationPhase phase = DefragmentationPhase::kNone;
  std::string message;
  std::string place;             // for people: the wanted place
  std::vector<NodeChips> chips;  // … kept until the end
  std::int64_t lost = 0;         // chip-seconds, of all moves
  std::vector<GangMove> moves;
  std::optional<WallTime> start = {};       // when the moves were planned
  std::optional<WallTime> end = {};         // when nothing was left to do
  std::optional<WallTime> kept_until = {};  // the free place

  friend bool operator==(const DefragmentationStatus&, const DefragmentationStatus&) = default;
};

struct DefragmentationFact {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  WallTime created;
  DefragmentationSpec spec;
  std::string spec_error;  // why the spec cannot be used; empty when it can
  DefragmentationStatus status;
  std::uint64_t shown = 0;  // the digest of the status
};

// Fails with kInvalidArgument when the object is none at all: its metadata has no name.
absl::StatusOr<std::shared_ptr<const DefragmentationFact>> ParseDefragmentation(const Json& object);

// Returns the request of a gang that would fit the place; nullopt for a place for a waiting gang.
std::optional<GangRequest> WantedBy(const DefragmentationSpec& spec);
// Returns "a place for 2 slices of 4x4x4", "2 more free UltraServers" or "a place for gang ns/a".
std::string Describe(const DefragmentationSpec& spec);

}  // namespace tahoma::controller
