#include "lib/config/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <iterator>
#include <utility>

#include "lib/base/json.h"

namespace tahoma::config {
namespace {

constexpr std::string_view kJson = "json";

std::string TimeOf(spdlog::log_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  const auto part = std::chrono::floor<std::chrono::milliseconds>(since - whole);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(static_cast<std::time_t>(whole.count())), part.count());
}

// Bytes that are no UTF-8, as in a name from outside, must not lose the line.
std::string Quoted(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

class JsonFormatter final : public spdlog::formatter {
 public:
  explicit JsonFormatter(std::string program) : program_(std::move(program)) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& into) override {
    const auto level = spdlog::level::to_string_view(message.level);
    fmt::format_to(std::back_inserter(into),
                   R"({{"time":"{}","level":"{}","program":"{}","message":{}}})"
                   "\n",
                   TimeOf(message.time), std::string_view(level.data(), level.size()), program_,
                   Quoted({message.payload.data(), message.payload.size()}));
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>(program_);
  }

 private:
  const std::string program_;
};

}  // namespace

void DeclareLog(Fields& fields, LogOptions* options) {
  fields.String("logFormat", &options->format,
                "how messages are written to stderr: lines of text, or a JSON object for each with "
                "time, level, program and message",
                {"text", "json"});
  fields.String("logLevel", &options->level,
                "which messages are written: error; warn: those, too, that somebody may have to "
                "act on; info: decisions, too; debug: how long they took, too",
                {"error", "warn", "info", "debug"});
}

std::unique_ptr<spdlog::formatter> MakeLogFormatter(const std::string& program,
                                                    std::string_view format) {
  if (format == kJson) return std::make_unique<JsonFormatter>(program);
  return std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                                                     spdlog::pattern_time_type::utc);
}

void StartLog(const std::string& program, const LogOptions& options) {
  auto logger = spdlog::stderr_logger_mt(program);
  logger->set_formatter(MakeLogFormatter(program, options.format));
  logger->set_level(spdlog::level::from_str(options.level));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace tahoma::config
