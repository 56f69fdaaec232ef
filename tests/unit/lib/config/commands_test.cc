// Command lines of programs with several commands, their help, and what completes them.

#include "lib/config/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/status.h"
#include "lib/base/version.h"

namespace tahoma::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

struct Options {
  std::string ns;
  bool all = false;
  std::string name;
  std::string output;
  std::string shell;
};

class CommandsTest : public ::testing::Test {
 protected:
  std::string Error(const Words& arguments) const {
    return std::string(Message(commands_.Parse(arguments).status()));
  }
  std::string Text(const Words& arguments) const {
    const auto parsed = commands_.Parse(arguments);
    return parsed.ok() ? parsed->text : std::string(Message(parsed.status()));
  }
  Words Completed(const Words& arguments) const {
    Words words;
    for (const auto& [word, description] : commands_.Complete(arguments).words) {
      words.push_back(word);
    }
    return words;
  }

  Options o_;
  const Commands commands_{
      {.program = "probe", .summary = "Probes things."},
      [this](Spec& spec) {
        spec.String("namespace", &o_.ns, "whose things");
        spec.Alias("-n", "namespace");
      },
      {{.name = "list",
        .summary = "Lists things.",
        .declare =
            [this](Spec& spec) {
              spec.Bool("all", &o_.all, "all of them");
              spec.String("output", &o_.output, "the form", {"", "json", "yaml"});
              spec.Alias("-o", "output");
            },
        .examples = "probe list -o json\nprobe list --all",
        .exits = {{3, "there is none"}}},
       {.name = "why",
        .summary = "Explains a thing.",
        .declare =
            [this](Spec& spec) { spec.Word("NAME", &o_.name, "a thing", Spec::Need::kRequired); }},
       {.name = "complete-with",
        .summary = "Prints a script.",
        .declare =
            [this](Spec& spec) {
              spec.Word("SHELL", &o_.shell, "of which", Spec::Need::kRequired, {"bash", "zsh"});
            }},
       {.name = "__secret", .summary = "Nobody sees it.", .hidden = true}}};
};

TEST_F(CommandsTest, SharedFlagsMayStandBeforeAndAfterTheCommand) {
  for (const Words& line : std::vector<Words>{{"-n", "why", "why", "train"},
                                              {"why", "train", "--namespace", "why"},
                                              {"why", "--namespace=why", "train"},
                                              {"--namespace=why", "why", "train"}}) {
    o_ = {};
    const auto parsed = commands_.Parse(line);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_NE(parsed->command, nullptr);
    EXPECT_EQ(parsed->command->name, "why");
    EXPECT_EQ(o_.ns, "why");
    EXPECT_EQ(o_.name, "train");
  }
}

TEST_F(CommandsTest, AFlagOfAnotherCommandIsAMistake) {
  EXPECT_THAT(Error({"why", "train", "--all"}), HasSubstr("why: unknown argument --all"));
  EXPECT_THAT(Error({"--all", "list"}), IsEmpty()) << "its own flag may stand before the command";
  EXPECT_THAT(Error({"list", "-o", "xml"}), HasSubstr("expected one of json, yaml"));
  EXPECT_EQ(Error({"why"}), "why: NAME is missing (a thing)");
  EXPECT_EQ(Error({"complete-with", "csh"}),
            "complete-with: SHELL: \"csh\" is not what belongs here; expected one of bash, zsh");
}

TEST_F(CommandsTest, AnUnknownCommandNamesTheNearest) {
  EXPECT_EQ(Error({"lisst"}), "unknown command \"lisst\"; did you mean list?");
  EXPECT_EQ(Error({"help", "wyh-not"}),
            "unknown command \"wyh-not\"; `probe help` lists the commands");
  EXPECT_EQ(Error({"-n", "x"}), "a command is missing; `probe help` lists the commands");
}

TEST_F(CommandsTest, HelpIsGivenHoweverItIsAskedFor) {
  for (const Words& line : std::vector<Words>{{}, {"help"}, {"--help"}, {"-h"}}) {
    EXPECT_EQ(Text(line), commands_.Help());
  }
  for (const Words& line : std::vector<Words>{{"help", "list"}, {"list", "-h"}, {"-h", "list"}}) {
    EXPECT_THAT(Text(line), HasSubstr("probe list [flags]"));
  }
  EXPECT_EQ(Text({"--version"}), fmt::format("probe {}\n", kVersion));
  EXPECT_EQ(Text({"list", "--version"}), fmt::format("probe {}\n", kVersion));
}

TEST_F(CommandsTest, TheHelpOfACommandHasItsFlagsExamplesAndStatuses) {
  const std::string help = Text({"help", "list"});
  for (const char* part :
       {"Lists things.", "  probe list -o json\n  probe list --all\n", "-o,--output  (json | yaml)",
        "-n,--namespace", "  3  there is none\n", "  2  the command line"}) {
    EXPECT_THAT(help, HasSubstr(part));
  }
  EXPECT_THAT(help, Not(HasSubstr("NAME")));
  EXPECT_THAT(Text({"help", "why"}), HasSubstr("probe why NAME [flags]"));
  EXPECT_THAT(Text({}), HasSubstr("  list           Lists things.\n"));
  EXPECT_THAT(Text({}), Not(HasSubstr("__secret")));
}

TEST_F(CommandsTest, CommandsFlagsAndChoicesAreCompleted) {
  EXPECT_THAT(Completed({""}), ElementsAre("list", "why", "complete-with", "help"));
  EXPECT_THAT(Completed({"-n", "x", "li"}), ElementsAre("list"));
  EXPECT_THAT(Completed({"help", "w"}), ElementsAre("why"));
  EXPECT_THAT(Completed({"list", "--"}), ElementsAre("--all", "--output", "--namespace"));
  EXPECT_THAT(Completed({"list", "-o", ""}), ElementsAre("json", "yaml"));
  EXPECT_THAT(Completed({"list", "--output", "j"}), ElementsAre("json"));
  EXPECT_THAT(Completed({"complete-with", "z"}), ElementsAre("zsh"));
  EXPECT_THAT(Completed({}), IsEmpty());
  EXPECT_THAT(Completed({"nonsense", ""}), IsEmpty());
}

TEST_F(CommandsTest, ValuesOfTheClusterAreLeftToTheProgram) {
  const auto name = commands_.Complete({"why", "-n", "team", "tr"});
  EXPECT_EQ(name.wanted, "NAME");
  EXPECT_EQ(name.command, "why");
  EXPECT_EQ(commands_.Complete({"why", "-n", ""}).wanted, "namespace");
  EXPECT_EQ(commands_.Complete({"why", "train", ""}).wanted, "") << "there is one word only";
  EXPECT_EQ(commands_.Complete({"list", "-o", ""}).wanted, "");
}

}  // namespace
}  // namespace tahoma::config
