#include "controller/app/replay_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "lib/base/check.h"
#include "lib/base/files.h"
#include "lib/base/json.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kExample = "examples/replay/days.yaml";

struct CommandEnd {
  std::optional<int> status;
  std::string out;
  std::string errors;
};

template <typename... Words>
CommandEnd Command(Words... words) {
  const std::array<const char*, sizeof...(words) + 2> line = {"controller", "--replay", words...};
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  CommandEnd end;
  end.status = RunReplayCommand(static_cast<int>(line.size()), line.data());
  end.out = ::testing::internal::GetCapturedStdout();
  end.errors = ::testing::internal::GetCapturedStderr();
  return end;
}

// Returns the text as a page shows what a command prints.
std::string Indented(const std::string& text) {
  std::string indented = "    ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    indented += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) indented += "    ";
  }
  return indented;
}

TEST(ReplayCommandTest, ThePageShowsWhatTheExamplePrints) {
  const CommandEnd end = Command(kExample);
  EXPECT_EQ(end.status, 0);
  EXPECT_THAT(*ReadFile("docs/tasks/replay.md"), HasSubstr(Indented(end.out)));
  EXPECT_THAT(end.errors, StartsWith("504 jobs on 2 UltraServers: 128 chips\n"));
}

TEST(ReplayCommandTest, FilesOfAllResultsAreWritten) {
  const testing::TempDir folder;
  const std::string out = folder.path() + "/a/b";
  const CommandEnd end = Command(kExample, "--policy", "first-fit,easy", "--format", "json",
                                 "--out", out.c_str(), "--failures", "100h", "--seed", "5");
  ASSERT_EQ(end.status, 0) << end.errors;
  const Json json = ParseJson(end.out);
  EXPECT_EQ(json.size(), 2U);
  EXPECT_GT(json[0]["nodeFailures"], 0);
  EXPECT_EQ(json[0]["unfinished"], 0);
  EXPECT_EQ(*ReadFile(out + "/measures.json"), end.out);
  for (const char* name : {"measures.csv", "jobs.csv", "use.svg", "waits.svg"}) {
    EXPECT_THAT(*ReadFile(out + "/" + name), ::testing::Not(IsEmpty())) << name;
  }
}

TEST(ReplayCommandTest, AWrongCommandLineEndsWithTwoAndAWrongTraceWithOne) {
  EXPECT_EQ(Command().status, 2);
  EXPECT_EQ(Command(kExample, "--policy", "lottery").status, 2);
  const CommandEnd fleet = Command(kExample, "--fleet", "two");
  EXPECT_EQ(fleet.status, 2);
  EXPECT_THAT(fleet.errors, StartsWith("controller --replay: --fleet: \"two\" must begin with"));
  const CommandEnd missing = Command("no-such-trace.swf");
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.errors, HasSubstr("no-such-trace.swf"));
  const testing::TempDir folder;
  const std::string trace = folder.path() + "/t.swf";
  TAHOMA_CHECK_OK(
      WriteAtomically(trace, "1 -5 -1 9 1 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n", 0600));
  const CommandEnd wrong = Command(trace.c_str());
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.errors, HasSubstr("t.swf:1: submit time -5: must be 0 to"));
  EXPECT_THAT(wrong.out, IsEmpty());
}

TEST(ReplayCommandTest, OtherCommandLinesAreNotItsOwn) {
  const std::array<const char*, 2> line = {"controller", "--standalone"};
  EXPECT_EQ(RunReplayCommand(2, line.data()), std::nullopt);
}

}  // namespace
}  // namespace tahoma::controller
