// How long the jobs of a trace would have waited: `controller --replay TRACE`
// (docs/tasks/replay.md).
//
// Nothing runs and no cluster is asked: the controller's core, and policies to compare it with,
// place the trace's jobs in virtual time. The result goes to stdout, progress to stderr, and
// pictures and a table of the jobs to the folder of --out.
//
// Thread safety: RunReplayCommand is a program's main.

#pragma once

#include <optional>

namespace tahoma::controller {

// The status to end with when the command line begins with --replay, else nothing: 0 after a
// replay, 1 when a file cannot be read or written or the trace is wrong, 2 when the command line is
// wrong.
std::optional<int> RunReplayCommand(int argc, const char* const* argv);

}  // namespace tahoma::controller
