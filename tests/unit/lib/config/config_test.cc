// Files and flags, their bounds, and what a user is told who got one wrong.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "lib/base/version.h"
#include "lib/config/duration.h"
#include "lib/config/parse.h"
#include "lib/config/size.h"
#include "lib/config/spec.h"

namespace tahoma::config {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::internal::CaptureStderr;

struct Peer {
  std::int64_t node_id = -1;
  std::string address;
};
struct Image {
  std::string entrypoint;
  std::map<std::string, std::string> commands;
};
struct Options {
  bool standalone = false;
  std::string listen_address = "127.0.0.1:8001";
  std::uint16_t workers = 4;
  double rate = 1.5;
  nanoseconds resync = seconds(30);
  std::vector<std::string> publish{"chips"};
  std::map<std::string, std::string> labels;
  std::string server_id;
  std::vector<Peer> peers;
  std::map<std::string, Image> images;
  std::string command;
  std::vector<std::string> rest;
};

Spec SpecFor(Options& o) {
  Spec spec({.program = "probe", .kind = "ProbeConfig", .summary = "Tries."});
  spec.Bool("standalone", &o.standalone, "alone");
  spec.String("listenAddress", &o.listen_address, "where");
  spec.Int("workers", &o.workers, {.min = 1, .max = 4096}, "how many");
  spec.Number("rate", &o.rate, {.min = 0, .max = 10}, "how fast");
  spec.Duration("resync", &o.resync, {.min = seconds(1), .max = seconds(3600)}, "how often");
  spec.Strings("publish", &o.publish, "what", {"chips", "lnc1", "lnc2"});
  spec.Map("labels", &o.labels, "which");
  spec.Section("ultraServer", "its UltraServer", [&o](Fields& section) {
    section.String("id", &o.server_id, "its id");
    section.List<Peer>("peers", &o.peers, "the others", [](Fields& f, Peer& peer) {
      f.Int("nodeId", &peer.node_id, {.min = 0, .max = 3}, "place");
      f.String("address", &peer.address, "where");
    });
  });
  spec.MapOf<Image>("images", &o.images, "programs", [](Fields& f, Image& image) {
    f.String("entrypoint", &image.entrypoint, "first");
    f.Map("commands", &image.commands, "by name");
  });
  spec.Alias("-w", "workers");
  return spec;
}

std::string Head(const std::string& text) {
  return "apiVersion: tahoma.dev/v1alpha1\nkind: ProbeConfig\n" + text;
}

std::string FileError(const std::string& text) {
  Options options;
  return std::string(Message(ParseFile(Head(text), "probe.yaml", SpecFor(options))));
}

std::string FlagError(const std::vector<std::string>& arguments) {
  Options options;
  return std::string(Message(ParseArguments(arguments, SpecFor(options)).status()));
}

TEST(ConfigTest, AFileSetsEveryKindOfKey) {
  Options o;
  const std::string text = Head(R"(
standalone: true
listenAddress: 0.0.0.0:0
workers: 2Ki
rate: 2.25
resync: 1m30s
publish: [lnc1, lnc2]
labels: {a: "1", b: x}
ultraServer:
  id: us-1
  peers:
  - {nodeId: 1, address: "h:1"}
  - nodeId: 2
images:
  job:latest:
    entrypoint: /bin/job
    commands: {run: /bin/run}
)");
  ASSERT_EQ(ParseFile(text, "probe.yaml", SpecFor(o)), absl::OkStatus());
  EXPECT_TRUE(o.standalone);
  EXPECT_EQ(o.listen_address, "0.0.0.0:0");
  EXPECT_EQ(o.workers, 2048);
  EXPECT_EQ(o.rate, 2.25);
  EXPECT_EQ(o.resync, seconds(90));
  EXPECT_EQ(o.publish, (std::vector<std::string>{"lnc1", "lnc2"}));
  EXPECT_EQ(o.labels, (std::map<std::string, std::string>{{"a", "1"}, {"b", "x"}}));
  EXPECT_EQ(o.server_id, "us-1");
  ASSERT_EQ(o.peers.size(), 2u);
  EXPECT_EQ(o.peers[0].address, "h:1");
  EXPECT_EQ(o.peers[1].node_id, 2);
  EXPECT_EQ(o.images["job:latest"].commands["run"], "/bin/run");
}

TEST(ConfigTest, FlagsSetTheSameKeys) {
  Options o;
  const auto parsed = ParseArguments(
      {"--standalone", "--listen-address=:1", "-w", "9", "--rate", "3", "--resync", "2s",
       "--publish", "lnc1,lnc2", "--labels", "a=1,b=2=3", "--ultra-server.id", "us-2",
       "--ultra-server.peers", "[{nodeId: 3, address: x}]", "--images", "{i: {entrypoint: /e}}"},
      SpecFor(o));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, "");
  EXPECT_TRUE(o.standalone);
  EXPECT_EQ(o.listen_address, ":1");
  EXPECT_EQ(o.workers, 9);
  EXPECT_EQ(o.rate, 3);
  EXPECT_EQ(o.resync, seconds(2));
  EXPECT_EQ(o.publish, (std::vector<std::string>{"lnc1", "lnc2"}));
  EXPECT_EQ(o.labels, (std::map<std::string, std::string>{{"a", "1"}, {"b", "2=3"}}));
  EXPECT_EQ(o.server_id, "us-2");
  ASSERT_EQ(o.peers.size(), 1u);
  EXPECT_EQ(o.peers[0].node_id, 3);
  EXPECT_EQ(o.images["i"].entrypoint, "/e");
}

// The words of one flag are those of all its occurrences, in their order.
TEST(ConfigTest, FlagsOfListsAndMapsMayBeRepeated) {
  Options o;
  const auto parsed = ParseArguments(
      {"--publish", "lnc1", "--labels", "a=1", "--workers", "9", "--publish=chips,lnc2", "--labels",
       "b=2,c=3", "--ultra-server.peers", "[{nodeId: 3, address: x}]", "--ultra-server.peers",
       "[{nodeId: 1, address: y}, {nodeId: 2}]", "--images", "{i: {entrypoint: /e}}", "--images",
       "{j: {entrypoint: /f}}"},
      SpecFor(o));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(o.publish, (std::vector<std::string>{"lnc1", "chips", "lnc2"}));
  EXPECT_EQ(o.labels, (std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}, {"c", "3"}}));
  ASSERT_EQ(o.peers.size(), 3u);
  EXPECT_EQ(o.peers[2].node_id, 2);
  EXPECT_EQ(o.images["j"].entrypoint, "/f");
  EXPECT_EQ(o.images.size(), 2u);
}

TEST(ConfigTest, WhatARepeatedFlagCannotMeanIsRefused) {
  EXPECT_EQ(FlagError({"--labels", "a=1", "--labels", "a=2"}), "--labels: \"a\" is given twice");
  EXPECT_EQ(FlagError({"--publish", "lnc1", "--publish", "lnc3"}),
            "--publish[1]: \"lnc3\" is not what belongs here; expected one of chips, lnc1, lnc2");
  EXPECT_EQ(FlagError({"--images", "{}", "--images", "[]"}),
            "--images: \"[]\" cannot be added to what it was given before");
  EXPECT_EQ(FlagError({"--images", "word", "--images", "{}"}),
            "--images: \"word\" cannot be added to what it was given before");
  EXPECT_NE(FlagError({"--workers", "1", "--workers", "2"}), "") << "it can have one value only";
}

TEST(ConfigTest, AValueOfAListFlagIsTheNextWordOnly) {
  Options o;
  Spec spec = SpecFor(o);
  spec.Word("COMMAND", &o.command, "what to do", Spec::Need::kRequired);
  const auto parsed = ParseArguments({"--publish", "lnc1", "serve"}, spec);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(o.publish, std::vector<std::string>{"lnc1"});
  EXPECT_EQ(o.command, "serve");
}

TEST(ConfigTest, NumbersTakeTheUnitsOfSizes) {
  for (const char* text : {"2K", "2k", "2KB", "2Ki", "2KiB", "2048", "2048B"}) {
    Options o;
    ASSERT_TRUE(ParseArguments({"--workers", text}, SpecFor(o)).ok()) << text;
    EXPECT_EQ(o.workers, 2048) << text;
  }
  EXPECT_EQ(FlagError({"--workers", "2KK"}),
            "--workers: \"2KK\" is not what belongs here; expected integer 1 to 4096");
  EXPECT_EQ(FlagError({"--workers", "1GiB"}),
            "--workers: 1GiB is out of bounds; expected integer 1 to 4096");
  EXPECT_NE(FlagError({"--workers", "9999999999T"}), "") << "no overflow";
}

TEST(ConfigTest, FlagsWinOverTheFile) {
  const std::string name = testing::TempDir() + "/config_test_probe.yaml";
  std::ofstream(name) << Head("standalone: true\nworkers: 7\nrate: 4\n");
  Options o;
  const auto parsed =
      ParseArguments({"--standalone=false", "--config", name, "--workers", "8"}, SpecFor(o));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_FALSE(o.standalone);
  EXPECT_EQ(o.workers, 8);
  EXPECT_EQ(o.rate, 4);
  std::remove(name.c_str());
}

TEST(ConfigTest, AKeyWithoutAValueKeepsItsDefault) {
  Options o;
  ASSERT_EQ(ParseFile(Head("workers:\nultraServer:\n"), "f", SpecFor(o)), absl::OkStatus());
  EXPECT_EQ(o.workers, 4);
}

TEST(ConfigTest, EveryMistakeInAFileNamesKeyLineAndWhatWouldBeRight) {
  EXPECT_EQ(FileError("listenAdress: x\n"),
            "probe.yaml:3: listenAdress: unknown key; did you mean \"listenAddress\"?");
  EXPECT_EQ(FileError("ultraServer:\n  nonsense: 1\n"),
            "probe.yaml:4: ultraServer.nonsense: unknown key; known are id, peers");
  EXPECT_EQ(FileError("workers: many\n"),
            "probe.yaml:3: workers: \"many\" is not what belongs here; expected integer 1 to 4096");
  EXPECT_EQ(FileError("\nworkers: 0\n"),
            "probe.yaml:4: workers: 0 is out of bounds; expected integer 1 to 4096");
  EXPECT_EQ(FileError("standalone: yes\n"),
            "probe.yaml:3: standalone: \"yes\" is not what belongs here; expected true or false");
  EXPECT_EQ(
      FileError("resync: 30\n"),
      "probe.yaml:3: resync: \"30\" is not a duration; expected for example 500ms, 30s, 1m30s "
      "or 2h");
  EXPECT_EQ(FileError("resync: 2h\n"),
            "probe.yaml:3: resync: 2h is out of bounds; expected duration 1s to 1h");
  EXPECT_EQ(FileError("publish: [chips, rocks]\n"),
            "probe.yaml:3: publish[1]: \"rocks\" is not what belongs here; expected one of chips, "
            "lnc1, lnc2");
  EXPECT_EQ(
      FileError("ultraServer:\n  peers:\n  - nodeId: 1\n  - nodeId: 4\n"),
      "probe.yaml:6: ultraServer.peers[1].nodeId: 4 is out of bounds; expected integer 0 to 3");
  EXPECT_EQ(FileError("workers: 1\nworkers: 2\n"),
            "probe.yaml: line 4: the key \"workers\" is given twice");
  EXPECT_NE(FileError("workers: [1\n").find("probe.yaml: line"), std::string::npos);
}

TEST(ConfigTest, AFileOfAnotherKindOrVersionIsRefused) {
  Options o;
  const Spec spec = SpecFor(o);
  EXPECT_EQ(Message(ParseFile("workers: 1\n", "f", spec)),
            "f:1: apiVersion is missing; expected \"apiVersion: tahoma.dev/v1alpha1\"");
  EXPECT_EQ(Message(ParseFile("apiVersion: tahoma.dev/v1alpha1\nkind: Other\n", "f", spec)),
            "f:2: kind: \"Other\" is not supported; expected ProbeConfig");
  EXPECT_FALSE(ParseFile("- a\n", "f", spec).ok());
  EXPECT_FALSE(ParseFile("", "f", spec).ok());
}

TEST(ConfigTest, EveryMistakeInAFlagIsNamed) {
  EXPECT_EQ(FlagError({"--worker", "1"}), "unknown argument --worker; did you mean --workers?");
  EXPECT_EQ(FlagError({"--workers", "5000"}),
            "--workers: 5000 is out of bounds; expected integer 1 to 4096");
  EXPECT_EQ(FlagError({"--labels", "a"}),
            "--labels: \"a\" is not a pair; expected name=value,name=value");
  EXPECT_EQ(FlagError({"--config", "/nonexistent/x"}), "--config: cannot read /nonexistent/x");
  EXPECT_NE(FlagError({"stray"}), "");
  EXPECT_NE(FlagError({"--workers"}), "");
}

TEST(ConfigTest, AKeyThatIsGoneSaysWhatIsSoNowAndIsNotShown) {
  std::int64_t workers = 1;
  Spec spec({.program = "probe", .kind = "ProbeConfig", .summary = "Probes."});
  spec.Int("workers", &workers, {}, "threads");
  spec.Gone("mode", "there is one mode");
  spec.Section("old", "", [](Fields& section) { section.Gone("key", "there is none"); });
  const auto flag = [&](const std::string& name) {
    return std::string(Message(ParseArguments({name, "x"}, spec).status()));
  };
  EXPECT_EQ(flag("--mode"), "--mode: there is one mode; remove --mode");
  EXPECT_EQ(flag("--old.key"), "--old.key: there is none; remove --old.key");
  EXPECT_EQ(Message(ParseFile(Head("mode: aws\n"), "probe.yaml", spec)),
            "probe.yaml:3: mode: there is one mode; remove mode");
  EXPECT_EQ(Message(ParseFile(Head("colour: red\n"), "probe.yaml", spec)),
            "probe.yaml:3: colour: unknown key; known are workers");
  EXPECT_EQ(ParseArguments({"--help"}, spec)->find("mode"), std::string::npos);
}

TEST(ConfigTest, AFractionIsAnsweredWithAWholeNumberOfASmallerUnit) {
  EXPECT_EQ(FlagError({"--workers", "1.5G"}),
            "--workers: \"1.5G\" is not what belongs here; expected integer 1 to 4096, whole: for "
            "example 1536M for 1.5G");
}

TEST(ConfigTest, HelpListsEveryFlagWithDefaultAndBounds) {
  Options o;
  const std::string program = fmt::format("probe {}", kVersion);
  const auto help = ParseArguments({"--help"}, SpecFor(o));
  ASSERT_TRUE(help.ok());
  for (const std::string& part : std::vector<std::string>{
           "--listen-address  (string; default 127.0.0.1:8001)",
           "-w,--workers  (integer 1 to 4096; default 4)",
           "--ultra-server.peers  (list of {nodeId, address}; may be repeated)",
           "kind: ProbeConfig", program}) {
    EXPECT_NE(help->find(part), std::string::npos) << part << "\n" << *help;
  }
  EXPECT_EQ(*ParseArguments({"--version"}, SpecFor(o)), program + "\n");
}

TEST(ConfigTest, WordsWithoutDashesAreTakenInOrder) {
  Options o;
  Spec spec({.program = "tool", .kind = "", .summary = "s"});
  spec.Bool("wide", &o.standalone, "more");
  spec.Word("COMMAND", &o.command, "what to do", Spec::Need::kRequired);
  spec.Words("NAME", &o.rest, "of what");
  ASSERT_TRUE(ParseArguments({"why", "--wide", "a", "b"}, spec).ok());
  EXPECT_EQ(o.command, "why");
  EXPECT_EQ(o.rest, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(Message(ParseArguments({}, spec).status()), "COMMAND is missing (what to do)");
}

TEST(ConfigTest, AnErrorEndsTheProgramWithStatusTwo) {
  Options o;
  const Spec spec = SpecFor(o);
  const char* const bad[] = {"probe", "--workers", "x"};
  CaptureStderr();
  EXPECT_EQ(Parse(3, bad, spec), 2);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("probe: --workers"), std::string::npos);
  const char* const good[] = {"probe", "--workers", "2"};
  EXPECT_EQ(Parse(3, good, spec), std::nullopt);
}

TEST(ConfigTest, FlagNamesSeparateWords) {
  EXPECT_EQ(FlagName("listenAddress"), "listen-address");
  EXPECT_EQ(FlagName("clientCAFile"), "client-ca-file");
  EXPECT_EQ(FlagName("dataDir"), "data-dir");
  EXPECT_EQ(FlagName("minbytes"), "minbytes");
}

TEST(ConfigTest, NestedAliasesDoNotFillMemory) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{0}: &a{0} [", i);
    for (int j = 0; j < 10; ++j) bomb += fmt::format("{}*a{}", j ? ", " : "", i - 1);
    bomb += "]\n";
  }
  EXPECT_FALSE(ParseYaml(bomb).ok());
  EXPECT_FALSE(ParseYaml(std::string(1000, '[')).ok());
}

TEST(ConfigTest, StrayTextAfterTheDocumentIsRefused) {
  for (const char* text :
       {"a: 1\n---\nb: 2\n", "]", "}", "a: 1\n]", "a: [1]]", ",", "a: 1\n...\n}"}) {
    EXPECT_FALSE(ParseYaml(text).ok()) << text;
  }
  EXPECT_TRUE(ParseYaml("---\na: 1\n...\n").ok());
}

TEST(ConfigTest, AliasesAreCopies) {
  const auto value = ParseYaml("a: &x {b: 1}\nc: *x\n");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->entries[1].value.entries[0].value.scalar, "1");
  EXPECT_FALSE(ParseYaml("a: &x [*x]\n").ok());
  EXPECT_FALSE(ParseYaml("a: *x\n").ok());
}

TEST(SizeTest, OneSizeHasManySpellings) {
  for (const char* text :
       {"64M", "64m", "64MB", "64mb", "64Mi", "64MiB", "65536K", "67108864", "67108864B"}) {
    const auto bytes = ParseSize(text);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, 64u << 20) << text;
  }
  EXPECT_EQ(*ParseSize("1G"), 1u << 30);
  EXPECT_EQ(*ParseSize("1T"), std::uint64_t{1} << 40);
}

TEST(SizeTest, NothingElseIsASize) {
  for (const char* text : {"", "0", "0K", "-1", "1.5M", "1 M", "M", "1P", "1MM", "1Mib!", "1iB",
                           "2T", "1025G", "18446744073709551616", "99999999999G"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
  EXPECT_EQ(Message(ParseSize("12q").status()),
            "\"12q\" is no size from 1 to 1T; expected for example 8, 64K, 64MiB or 1G");
}

TEST(DurationTest, OnlyDurationsAreRead) {
  EXPECT_EQ(*ParseDuration("1h2m3.5s"), seconds(3723) + std::chrono::milliseconds(500));
  EXPECT_EQ(*ParseDuration("0s"), nanoseconds(0));
  EXPECT_EQ(*ParseDuration("250us"), std::chrono::microseconds(250));
  EXPECT_EQ(*ParseDuration("0.123456789012345678s"), nanoseconds(123'456'789));
  for (const char* text : {"", "1", "s", "-1s", "1 s", "1x", "1.s", ".5s", "99999999999999999999s",
                           "9999999h", "1d", "0.1234567890123456789s", "9000000000000000000ns"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

RC_GTEST_PROP(DurationTest, WhatIsWrittenIsReadBack, ()) {
  const auto value = nanoseconds(*rc::gen::inRange<std::int64_t>(0, 10'000'000'000'000'000));
  RC_ASSERT(*ParseDuration(FormatDuration(value)) == value);
}

RC_GTEST_PROP(ConfigTest, NoTextCrashesTheReader, (const std::string& text)) {
  Options o;
  (void)ParseFile(text, "f", SpecFor(o));
  (void)ParseFile(Head(text), "f", SpecFor(o));
}

}  // namespace
}  // namespace tahoma::config
