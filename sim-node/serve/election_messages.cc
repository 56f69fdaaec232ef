#include "sim-node/serve/election_messages.h"

#include <array>
#include <limits>

#include "lib/base/status.h"
#include "lib/wire/field_list.h"

namespace tahoma::sim {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();
constexpr std::array<std::string_view, 4> kAttempts = {"both", "right", "left", "alone"};
constexpr std::array<std::string_view, 3> kStages = {"reading", "ready", "done"};

constexpr auto kNoticeFields = [](auto& list, auto& notice) {
  list.Int("boot", notice.boot, 0, kMaxInt);
  list.Int("sequence", notice.sequence, 1, kMaxInt);
  list.Int("round", notice.round, 1, kMaxInt);
  list.Hex("serial", notice.serial);
  list.Name("attempt", notice.attempt, kAttempts);
  list.Name("stage", notice.stage, kStages);
  list.Hex("heardLeft", notice.heard[SideIndex(CableSide::kLeft)]);
  list.Hex("heardRight", notice.heard[SideIndex(CableSide::kRight)]);
  list.Bool("inUse", notice.in_use);
  list.Bool("cableUp", notice.cable_up);
  list.Check([&](wire::Fields& fields) {
    if (notice.serial == 0) fields.Fail(InvalidArgument("{} is zero", fields.Path("serial")));
  });
};

}  // namespace

wire::Request EncodeNotice(const Notice& notice) {
  return {.method = std::string(kElectionMethod),
          .params = wire::WriteMessage(notice, kNoticeFields)};
}

absl::StatusOr<Notice> DecodeNotice(const wire::Request& message) {
  return wire::ReadMessage<Notice>(message.params, kElectionMethod, kNoticeFields);
}

}  // namespace tahoma::sim
