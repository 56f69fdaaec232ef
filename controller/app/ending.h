// Ends the program in time, whatever hangs.
//
// Scope: the process.
//
// Thread safety: any thread; the last call counts.

#pragma once

#include <chrono>

namespace tahoma::controller {

// Less than the ten seconds after which systemd, docker and our tests lose patience.
inline constexpr std::chrono::seconds kEndingMost{9};

// Once `most` has passed, says on stderr that something hangs and ends the process with status 1,
// as a kill would: everything acknowledged is on disk.
void EndWithin(std::chrono::seconds most);

}  // namespace tahoma::controller
