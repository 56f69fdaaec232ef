// A program's log: one line on stderr for each message.
//
//   LogOptions options;
//   DeclareLog(spec, &options);  // keys logFormat and logLevel, flags --log-format and --log-level
//   StartLog("dra-plugin", options);
//
// A line of text is "2026-11-26T08:00:00.123Z info ending"; one of JSON
// {"time":"2026-11-26T08:00:00.123Z","level":"info","program":"dra-plugin","message":"ending"}.
//
// Times are UTC. A line break in a message is escaped in JSON only.
//
// Scope: how lines look; spdlog carries them.
//
// Thread safety: called once, before other threads begin.

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/config/spec.h"

namespace spdlog {
class formatter;
}

namespace tahoma::config {

struct LogOptions {
  std::string format = "text";  // or "json"
  std::string level = "info";   // or "error", "warn", "debug": lesser messages are not written
};

// Declares the keys logFormat and logLevel, which take the words above only.
void DeclareLog(Fields& fields, LogOptions* options);

// Messages go to stderr in this form, from this level on, from now on.
void StartLog(const std::string& program, const LogOptions& options);

// Returns the formatter that writes messages as lines of the form.
std::unique_ptr<spdlog::formatter> MakeLogFormatter(const std::string& program,
                                                    std::string_view format);

}  // namespace tahoma::config
