#include "lib/config/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>
#include <string>
#include <vector>

#include "lib/base/json.h"

namespace tahoma::config {
namespace {

using ::testing::MatchesRegex;

// The lines that a program writes for these messages, each a warning.
std::vector<std::string> LinesOf(const std::string& format,
                                 const std::vector<std::string>& messages) {
  std::ostringstream out;
  auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(out);
  spdlog::logger logger("dra-plugin", sink);
  logger.set_formatter(MakeLogFormatter("dra-plugin", format));
  for (const std::string& message : messages) logger.warn("{}", message);
  std::vector<std::string> lines;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(LogTest, TextIsTimeLevelAndMessage) {
  const auto lines = LinesOf("text", {"node a is lost"});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], MatchesRegex("20[0-9-]{8}T[0-9:]{8}\\.[0-9]{3}Z warning node a is lost"));
}

TEST(LogTest, EachMessageIsOneJsonObjectWhateverBytesItHas) {
  const std::vector<std::string> messages = {"node a is lost", "two\nlines \"quoted\" \\ \x01",
                                             "no UTF-8: \xff.", ""};
  const auto lines = LinesOf("json", messages);
  ASSERT_EQ(lines.size(), messages.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Json line = ParseJson(lines[i]);
    EXPECT_EQ(line.size(), 4U);
    EXPECT_EQ(line["level"], "warning");
    EXPECT_EQ(line["program"], "dra-plugin");
    EXPECT_THAT(line["time"].get<std::string>(), MatchesRegex("20[0-9-]{8}T[0-9:]{8}\\.[0-9]{3}Z"));
    EXPECT_EQ(line["message"], i == 2 ? "no UTF-8: \xEF\xBF\xBD." : messages[i]);
  }
}

}  // namespace
}  // namespace tahoma::config
