#include "controller/core/facts/defragmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "controller/core/facts/read_facts.h"
#include "controller/model/cordoned_chips.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/field.h"
#include "lib/kube/objects/metadata.h"

namespace tahoma::controller {
namespace {

using kube::Field;

constexpr std::int64_t kKeepMost = 86'400;
constexpr std::size_t kNodesMost = 4096;

constexpr std::array<std::pair<DefragmentationPhase, std::string_view>, 7> kPhases = {{
    {DefragmentationPhase::kNone, ""},
    {DefragmentationPhase::kTurn, "Waiting"},
    {DefragmentationPhase::kPlanned, "Planned"},
    {DefragmentationPhase::kMoving, "Moving"},
    {DefragmentationPhase::kDone, "Done"},
    {DefragmentationPhase::kAborted, "Aborted"},
    {DefragmentationPhase::kFailed, "Failed"},
}};
constexpr std::array<std::pair<MoveState, std::string_view>, 6> kStates = {{
    {MoveState::kPlanned, "Planned"},
    {MoveState::kMoving, "Moving"},
    {MoveState::kMoved, "Moved"},
    {MoveState::kGone, "Gone"},
    {MoveState::kFailed, "Failed"},
    {MoveState::kCancelled, "Cancelled"},
}};

// Returns the first value for a word that no value has.
template <typename Value, std::size_t n>
Value ValueOf(const std::array<std::pair<Value, std::string_view>, n>& words, Field field) {
  const auto found =
      std::ranges::find(words, field.Text(), &std::pair<Value, std::string_view>::second);
  return found == words.end() ? words.front().first : found->first;
}

template <typename Value, std::size_t n>
std::string_view WordOf(const std::array<std::pair<Value, std::string_view>, n>& words,
                        Value value) {
  const auto found = std::ranges::find(words, value, &std::pair<Value, std::string_view>::first);
  TAHOMA_CHECK(found != words.end());
  return found->second;
}

std::int64_t NumberWithin(Field field, std::int64_t otherwise, std::int64_t least,
                          std::int64_t most) {
  const std::int64_t number = field.Int(otherwise);
  if (number < least || number > most) {
    field.Fail(fmt::format("is {}, must be {} to {}", number, least, most));
  }
  return std::clamp(number, least, most);
}

void ReadWish(Field spec, DefragmentationSpec& wish) {
  wish.shape = spec.At("shape").Text();
  if (spec.At("shape").has_value() && wish.shape.empty()) {
    spec.At("shape").Fail("must be a box, such as 4x4x4");
  }
  wish.slices = NumberWithin(spec.At("slices"), 1, 1, DefragmentationSpec::kSlicesMost);
  if (const Field count = spec.At("ultraServers"); count.has_value()) {
    wish.ultra_servers = NumberWithin(count, 1, 1, DefragmentationSpec::kSlicesMost);
  }
  if (const Field gang = spec.At("forGang"); gang.has_value()) {
    wish.for_gang = GangKey{std::string(gang.Required("namespace").Text()),
                            std::string(gang.Required("name").Text())};
  }
  const int said = (spec.At("shape").has_value() ? 1 : 0) + (wish.ultra_servers ? 1 : 0) +
                   (wish.for_gang ? 1 : 0);
  if (said != 1) spec.Fail("must have one of shape, ultraServers and forGang");
  if (wish.shape.empty() && wish.slices != 1) spec.At("slices").Fail("must be 1 without shape");
  if (const auto request = WantedBy(wish); request && said == 1) {
    GangRequest checked = *request;
    checked.members = checked.slices;
    if (const std::string faults = Describe(FaultsOf(checked)); !faults.empty()) spec.Fail(faults);
  }
}

void ReadDefragmentationSpec(Field root, DefragmentationSpec& wish) {
  const Field spec = root.Required("spec");
  ReadWish(spec, wish);
  wish.max_moves = NumberWithin(spec.At("maxMoves"), 10, 1, DefragmentationSpec::kMovesMost);
  wish.moves_per_hour =
      NumberWithin(spec.At("movesPerHour"), 6, 1, DefragmentationSpec::kPerHourMost);
  wish.apply = spec.At("apply").Bool();
  wish.abort = spec.At("abort").Bool();
  if (const Field keep = spec.At("keepFor"); keep.has_value()) {
    const auto time = ParseRuntime(keep.Text());
    const bool right = time && time->count() >= 0 && time->count() <= kKeepMost;
    if (!right) keep.Fail("must be a time such as 10m, and at most 24h");
    if (right) wish.keep_for = *time;
  }
}

std::optional<WallTime> TimeOf(Field field) {
  const auto time = ParseTime(field.Text());
  return time.ok() ? std::optional(*time) : std::nullopt;
}

std::vector<NodeChips> ChipsOfNodes(Field list) {
  std::vector<NodeChips> chips;
  for (const Field one : list.Items(kNodesMost)) {
    chips.push_back({.node = std::string(one.At("node").Text()),
                     .chips = ParseCordonedChips(one.At("chips").Text())});
  }
  return chips;
}

GangMove MoveOf(Field field) {
  GangMove move;
  move.gang = {std::string(field.At("namespace").Text()), std::string(field.At("name").Text())};
  move.run = static_cast<std::uint64_t>(std::max<std::int64_t>(0, field.At("run").Int()));
  move.from = field.At("from").Text();
  move.to = field.At("to").Text();
  move.chips = ChipsOfNodes(field.At("chips"));
  move.lost = field.At("lostChipSeconds").Int();
  move.state = ValueOf(kStates, field.At("state"));
  move.start = TimeOf(field.At("startTime"));
  move.end = TimeOf(field.At("endTime"));
  return move;
}

// A status that cannot be read is none: the object begins anew.
DefragmentationStatus ReadStatus(const Json& object) {
  kube::Reading reading(object);
  const Field field = reading.root().At("status");
  DefragmentationStatus status;
  status.observed_generation = field.At("observedGeneration").Int();
  status.phase = ValueOf(kPhases, field.At("phase"));
  status.message = field.At("message").Text();
  status.place = field.At("place").Text();
  status.chips = ChipsOfNodes(field.At("chips"));
  status.lost = field.At("lostChipSeconds").Int();
  for (const Field move : field.At("moves").Items(DefragmentationSpec::kMovesMost)) {
    status.moves.push_back(MoveOf(move));
  }
  status.start = TimeOf(field.At("startTime"));
  status.end = TimeOf(field.At("endTime"));
  status.kept_until = TimeOf(field.At("keptUntil"));
  return reading.status().ok() ? status : DefragmentationStatus{};
}

}  // namespace

std::string_view ToString(DefragmentationPhase phase) { return WordOf(kPhases, phase); }

std::string_view ToString(MoveState state) { return WordOf(kStates, state); }

bool IsOver(DefragmentationPhase phase) {
  return phase == DefragmentationPhase::kDone || phase == DefragmentationPhase::kAborted ||
         phase == DefragmentationPhase::kFailed;
}

absl::StatusOr<std::shared_ptr<const DefragmentationFact>> ParseDefragmentation(
    const Json& object) {
  kube::Reading reading(object);
  kube::ObjectMeta metadata = kube::ParseMetadata(reading.root());
  TAHOMA_RETURN_IF_ERROR(reading.StatusOf("defragmentation"));
  auto fact = std::make_shared<DefragmentationFact>();
  fact->name = std::move(metadata.name);
  fact->uid = std::move(metadata.uid);
  fact->resource_version = std::move(metadata.resource_version);
  fact->generation = metadata.generation;
  fact->created = metadata.created;
  kube::Reading spec(object);
  ReadDefragmentationSpec(spec.root(), fact->spec);
  if (!spec.status().ok()) fact->spec_error = Message(spec.status());
  fact->status = ReadStatus(object);
  fact->shown = StatusDigest(object);
  return fact;
}

std::optional<GangRequest> WantedBy(const DefragmentationSpec& spec) {
  if (spec.for_gang) return std::nullopt;
  GangRequest request;
  request.members = 0;
  request.shape = spec.ultra_servers ? "4x4x4" : spec.shape;
  request.slices = spec.ultra_servers.value_or(spec.slices);
  return request;
}

std::string Describe(const DefragmentationSpec& spec) {
  if (spec.for_gang) return "a place for gang " + ToString(*spec.for_gang);
  if (spec.ultra_servers) return fmt::format("{} more free UltraServers", *spec.ultra_servers);
  if (spec.slices == 1) return "a place for " + spec.shape;
  return fmt::format("a place for {} slices of {}", spec.slices, spec.shape);
}

}  // namespace tahoma::controller
