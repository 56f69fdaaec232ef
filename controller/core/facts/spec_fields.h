// Fields that specs of several kinds have.
//
// Each reader notes the first mistake in the field's Reading, and returns what could be read.
//
// Thread safety: pure functions.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "controller/share/queue_spec.h"
#include "lib/kube/field.h"

namespace tahoma::controller {

inline constexpr std::size_t kQueueNameMost = 63;
inline constexpr std::string_view kQueueNameRule = "must be 1 to 63 of a-z, 0-9 and -";

bool IsQueueName(std::string_view text);
std::int64_t IntWithin(kube::Field field, std::int64_t least, std::int64_t most);
// Reads whole chips by instance type.
ChipCounts ReadChipCounts(kube::Field field);
// Reads one number and h, m or s; nullopt when absent or wrong.
std::optional<std::chrono::seconds> ReadTimeSpan(kube::Field field);
// Reads the same, more than 0. `such_as` is an example for the message.
std::optional<std::chrono::seconds> TimeSpanOf(kube::Field field, std::string_view such_as);

}  // namespace tahoma::controller
