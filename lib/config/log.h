// A program's log: one line on stderr for each message.
//
//   std::string format = "text";
//   DeclareLogFormat(spec, &format);  // key logFormat, flag --log-format
//   StartLog("dra-plugin", format);
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

// Declares the key logFormat: "text" or "json".
void DeclareLogFormat(Fields& fields, std::string* format);

// Messages go to stderr in this form from now on.
void StartLog(const std::string& program, std::string_view format);

// Returns the formatter that writes messages as lines of the form.
std::unique_ptr<spdlog::formatter> MakeLogFormatter(const std::string& program,
                                                    std::string_view format);

}  // namespace tahoma::config
