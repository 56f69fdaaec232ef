#include "sim-node/serve/election_messages.h"

#include <charconv>
#include <limits>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();
constexpr std::array<std::string_view, 4> kAttempts = {"both", "right", "left", "alone"};
constexpr std::array<std::string_view, 3> kStages = {"reading", "ready", "done"};

std::string Hex(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::uint64_t ReadHex(wire::Fields& fields, std::string_view key) {
  const std::string text = fields.String(key, 16, 16);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc() || end != text.data() + text.size()) {
    fields.Fail(InvalidArgument("{} must be 16 hex digits", fields.Path(key)));
  }
  return number;
}

template <typename Enum, std::size_t kCount>
Enum ReadName(wire::Fields& fields, std::string_view key,
              const std::array<std::string_view, kCount>& names) {
  const std::string text = fields.String(key, 1, 16);
  for (std::size_t i = 0; i < kCount; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  fields.Fail(InvalidArgument("{} is \"{}\"; expected one of {}", fields.Path(key), text,
                              fmt::join(names, ", ")));
  return Enum{};
}

}  // namespace

wire::Request EncodeNotice(const Notice& notice) {
  const Json params = {{"boot", notice.boot},
                       {"sequence", notice.sequence},
                       {"round", notice.round},
                       {"serial", Hex(notice.serial)},
                       {"attempt", kAttempts[static_cast<std::size_t>(notice.attempt)]},
                       {"stage", kStages[static_cast<std::size_t>(notice.stage)]},
                       {"heardLeft", Hex(notice.heard[SideIndex(CableSide::kLeft)])},
                       {"heardRight", Hex(notice.heard[SideIndex(CableSide::kRight)])},
                       {"inUse", notice.in_use},
                       {"cableUp", notice.cable_up}};
  return {.method = std::string(kElectionMethod), .params = params.dump()};
}

absl::StatusOr<Notice> DecodeNotice(const wire::Request& message) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ParseJson(message.params, kElectionMethod));
  wire::Fields fields(json, std::string(kElectionMethod));
  Notice notice;
  notice.boot = static_cast<std::uint64_t>(fields.Int("boot", 0, kMaxInt));
  notice.sequence = static_cast<std::uint64_t>(fields.Int("sequence", 1, kMaxInt));
  notice.round = static_cast<std::uint64_t>(fields.Int("round", 1, kMaxInt));
  notice.serial = ReadHex(fields, "serial");
  notice.attempt = ReadName<ElectionAttempt>(fields, "attempt", kAttempts);
  notice.stage = ReadName<ElectionStage>(fields, "stage", kStages);
  notice.heard[SideIndex(CableSide::kLeft)] = ReadHex(fields, "heardLeft");
  notice.heard[SideIndex(CableSide::kRight)] = ReadHex(fields, "heardRight");
  notice.in_use = fields.Bool("inUse");
  notice.cable_up = fields.Bool("cableUp");
  if (fields.status().ok() && notice.serial == 0) {
    fields.Fail(InvalidArgument("{} is zero", fields.Path("serial")));
  }
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return notice;
}

}  // namespace tahoma::sim
