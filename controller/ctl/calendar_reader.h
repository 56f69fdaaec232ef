// Reads Capacity Blocks from the Kubernetes API for the calendar.
//
//   TAHOMA_ASSIGN_OR_RETURN(const CalendarRead read, ReadCalendarBlocks(transport, "team-a"));
//   const Calendar calendar = MakeCalendar(read.blocks, {.now = now});
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "controller/ctl/calendar.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/transport.h"

namespace tahoma::controller {

struct CalendarRead {
  std::vector<CalendarBlock> blocks = {};
  bool test_clock = false;  // the blocks live by the clock of a test
};

// `ns` empty: all namespaces.
absl::StatusOr<CalendarRead> ReadCalendarBlocks(kube::Transport& transport, const std::string& ns);

// nullopt for an object that is no block: its purchase was refused, is not decided yet, or its
// status cannot be read.
std::optional<CalendarBlock> CalendarBlockOf(const Json& object);

// Returns the time of blocks, which the admin API at `admin` knows.
absl::StatusOr<WallTime> ReadBlockTime(kube::Transport& admin);

// Returns the blocks as a list, for programs.
Json CalendarJson(const std::vector<CalendarBlock>& blocks);

}  // namespace tahoma::controller
