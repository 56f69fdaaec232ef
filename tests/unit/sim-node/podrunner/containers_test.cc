// Containers as real processes of /bin/sh, their logs, and what they are started with.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "lib/base/files.h"
#include "lib/base/status.h"
#include "sim-node/podrunner/cdi.h"
#include "sim-node/podrunner/container_log.h"
#include "sim-node/podrunner/container_root.h"
#include "sim-node/podrunner/environment.h"
#include "sim-node/podrunner/images.h"
#include "sim-node/podrunner/pod_users.h"
#include "sim-node/podrunner/pod_volumes.h"
#include "sim-node/podrunner/spawner.h"

namespace tahoma::sim {
namespace {

using std::chrono::seconds;

class FolderTest : public testing::Test {
 protected:
  FolderTest() {
    char name[] = "/tmp/tahoma-containers-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }

  std::string ReadAll(const std::filesystem::path& file, LogReader::Options options = {}) const {
    LogReader reader(file, options);
    std::string out;
    for (std::size_t before = 1; out.size() != before && reader.Next(out);) {
      before = out.size();
      reader.Next(out);
    }
    return out;
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  std::filesystem::path folder_;
};

class SpawnerTest : public FolderTest {
 protected:
  SpawnerTest()
      : spawner_(std::make_unique<PosixSpawner>(clock_, folder_, [this](const Ended& ended) {
          const std::lock_guard lock(mutex_);
          ended_[ended.id] = ended.exit;
          changed_.notify_all();
        })) {}
  ~SpawnerTest() override { spawner_.reset(); }

  Launch Shell(const std::string& id, const std::string& script) const {
    return {.id = id,
            .program = {.path = "/bin/sh", .argv = {"sh", "-c", script}},
            .environment = {{"PATH", "/usr/bin:/bin"}, {"GREETING", "hello"}},
            .working_dir = folder_,
            .log_file = folder_ / (id + ".log")};
  }
  Exit WaitFor(const std::string& id) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(30), [&] { return ended_.contains(id); })) << id;
    return ended_[id];
  }
  // A container whose process starts that program in a session of its own, and ends.
  void ExpectThatWhatLeavesTheGroupEnds(const std::string& id, const std::string& program) {
    const std::string held = id + ".held";
    const std::string apart = id + ".apart";
    ASSERT_EQ(mkfifo((folder_ / held).c_str(), 0600), 0);
    ASSERT_EQ(mkfifo((folder_ / apart).c_str(), 0600), 0);
    const std::string script =
        fmt::format("setsid sh -c 'exec 9> {}; echo > {}; exec {}' & read line < {}; exit 0", held,
                    apart, program, apart);
    ASSERT_TRUE(spawner_->Start(Shell(id, script)).ok());
    WaitForFifo(held);  // until nobody has it open for writing
    EXPECT_EQ(WaitFor(id).code, 0);
  }
  // Returns once the container has written `name`; the writer uses a FIFO, so nobody polls.
  void WaitForFifo(const std::string& name) const {
    std::ifstream in(folder_ / name);
    std::string line;
    std::getline(in, line);
  }

  SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Exit> ended_;
  std::unique_ptr<PosixSpawner> spawner_;
};

TEST_F(SpawnerTest, OutputAndExitCodeAreKept) {
  ASSERT_TRUE(spawner_->Start(Shell("a", "echo $GREETING; echo bad >&2; pwd; exit 7")).ok());
  const Exit exit = WaitFor("a");
  EXPECT_EQ(exit.code, 7);
  EXPECT_EQ(exit.signal, 0);
  const std::string log = ReadAll(folder_ / "a.log");
  EXPECT_NE(log.find("hello\n"), std::string::npos) << log;
  EXPECT_NE(log.find("bad\n"), std::string::npos) << log;
  EXPECT_NE(log.find(folder_.string()), std::string::npos) << log;
}

TEST_F(SpawnerTest, OnlyTheGivenEnvironmentReachesTheContainer) {
  ASSERT_TRUE(spawner_->Start(Shell("a", "env | grep -v -e ^_= -e ^PWD= -e ^SHLVL= | sort")).ok());
  WaitFor("a");
  EXPECT_EQ(ReadAll(folder_ / "a.log"),
            "GREETING=hello\nPATH=/usr/bin:/bin\nTAHOMA_CONTAINER_ID=a\n");
}

TEST_F(SpawnerTest, AMissingProgramIsAnErrorThatNamesIt) {
  Launch launch = Shell("a", "");
  launch.program.path = "/no/such/program";
  const absl::Status refused = spawner_->Start(launch);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(refused).find("/no/such/program"), std::string_view::npos) << refused;
  launch = Shell("b", "true");
  launch.working_dir = "/no/such/folder";
  EXPECT_NE(Message(spawner_->Start(launch)).find("/no/such/folder"), std::string_view::npos);
}

TEST_F(SpawnerTest, TermCanBeTrappedAndKillCannot) {
  ASSERT_EQ(mkfifo((folder_ / "ready").c_str(), 0600), 0);
  ASSERT_TRUE(spawner_
                  ->Start(Shell("a",
                                "trap 'echo bye; exit 3' TERM; echo up > ready; "
                                "while :; do sleep 1000 & wait; done"))
                  .ok());
  WaitForFifo("ready");
  spawner_->Signal("a", /*kill=*/false);
  EXPECT_EQ(WaitFor("a").code, 3);
  EXPECT_EQ(ReadAll(folder_ / "a.log"), "bye\n");

  ASSERT_TRUE(
      spawner_->Start(Shell("b", "trap '' TERM; echo up > ready; while :; do sleep 1000; done"))
          .ok());
  WaitForFifo("ready");
  spawner_->Signal("b", /*kill=*/false);
  spawner_->Signal("b", /*kill=*/true);
  const Exit killed = WaitFor("b");
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_EQ(killed.code, 137);
}

TEST_F(SpawnerTest, TheRestOfTheGroupEndsWithItsLeader) {
  ASSERT_EQ(mkfifo((folder_ / "held").c_str(), 0600), 0);
  // The child keeps the FIFO open for writing; reading ends only when it is gone.
  ASSERT_TRUE(spawner_->Start(Shell("a", "exec 9> held; sleep 1000 & exit 0")).ok());
  WaitForFifo("held");
  EXPECT_EQ(WaitFor("a").code, 0);
}

TEST_F(SpawnerTest, AProcessThatLeftTheGroupEndsWithItsContainerToo) {
  ExpectThatWhatLeavesTheGroupEnds("a", "sleep 1000");
}

// The defect: while a process starts a program its environment cannot be read, and it was left.
TEST_F(SpawnerTest, AProcessThatKeepsStartingProgramsEndsWithItsContainer) {
  Write("again", "exec sh again\n");
  for (int round = 0; round < 20; ++round) {
    ExpectThatWhatLeavesTheGroupEnds(fmt::format("a{}", round), "sh again");
  }
}

TEST_F(SpawnerTest, ContainersEndWithTheSpawner) {
  ASSERT_EQ(mkfifo((folder_ / "held").c_str(), 0600), 0);
  ASSERT_TRUE(spawner_->Start(Shell("a", "exec sleep 1000 > held")).ok());
  std::ifstream held(folder_ / "held");
  spawner_.reset();
  std::string line;
  EXPECT_FALSE(std::getline(held, line));  // end of file: the writer is gone
  EXPECT_EQ(WaitFor("a").signal, SIGKILL);
}

TEST_F(SpawnerTest, ProcessesOfAFormerRunAreSweptByTheirMark) {
  ASSERT_EQ(mkfifo((folder_ / "held").c_str(), 0600), 0);
  // A grandchild in a session of its own, as a daemon would be: no group reaches it.
  ASSERT_EQ(mkfifo((folder_ / "apart").c_str(), 0600), 0);
  ASSERT_TRUE(spawner_
                  ->Start(Shell("left",
                                "exec 9> held; setsid sh -c 'echo > apart; exec sleep 1000' & "
                                "read x < apart; exit 0"))
                  .ok());
  std::ifstream held(folder_ / "held");
  WaitFor("left");
  Write("left.container", "1\n");
  EXPECT_EQ(PosixSpawner::Sweep(folder_), (std::vector<std::string>{"left"}));
  std::string line;
  EXPECT_FALSE(std::getline(held, line));
  EXPECT_TRUE(PosixSpawner::Sweep(folder_).empty());
}

// The defect: the text was cut at the zero byte, without a word.
TEST_F(SpawnerTest, AZeroByteInAnArgumentOrVariableIsAnErrorThatNamesThePlace) {
  const std::string cut("a\0b", 3);
  Launch argument = Shell("a", "true");
  argument.program.argv.push_back(cut);
  EXPECT_EQ(Message(spawner_->Start(argument)), "argument 3 of /bin/sh contains a zero byte");
  Launch variable = Shell("a", "true");
  variable.environment["KEY"] = cut;
  EXPECT_EQ(Message(spawner_->Start(variable)), "variable KEY contains a zero byte");
  Launch folder = Shell("a", "true");
  folder.working_dir = cut;
  EXPECT_EQ(Message(spawner_->Start(folder)), "the working directory contains a zero byte");
  Launch fine = Shell("a", "exit 4");
  fine.environment["EMPTY"] = "";
  ASSERT_TRUE(spawner_->Start(fine).ok());
  EXPECT_EQ(WaitFor("a").code, 4) << "the refused ones have left nothing behind";
}

TEST_F(SpawnerTest, WhatCannotBeExecutedIsAnErrorOfTheStartAndNotAnExit) {
  Write("plain", "no program");
  Launch launch = Shell("a", "");
  launch.program.path = folder_ / "plain";
  EXPECT_NE(Message(spawner_->Start(launch)).find("Permission denied"), std::string_view::npos);
  std::filesystem::permissions(folder_ / "plain", std::filesystem::perms::owner_all);
  EXPECT_NE(Message(spawner_->Start(launch)).find("Exec format error"), std::string_view::npos);
  launch.program.path = folder_;
  EXPECT_NE(Message(spawner_->Start(launch)).find("Permission denied"), std::string_view::npos);
  launch = Shell("b", "true");
  launch.program.argv.emplace_back(std::size_t{200} << 10, 'x');  // MAX_ARG_STRLEN is 128 KiB
  EXPECT_NE(Message(spawner_->Start(launch)).find("Argument list too long"),
            std::string_view::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder_) || PosixSpawner::Sweep(folder_).empty())
      << "nothing to sweep";
}

TEST_F(SpawnerTest, OutputWithoutLineEndsZeroBytesAndFloodsAreKeptWithinBounds) {
  ASSERT_TRUE(spawner_->Start(Shell("zero", "printf 'a\\000b'; printf '\\377\\n' >&2")).ok());
  WaitFor("zero");
  const std::string log = ReadAll(folder_ / "zero.log");
  EXPECT_NE(log.find(std::string("a\0b", 3)), std::string::npos);
  EXPECT_NE(log.find("\xff\n"), std::string::npos);
  // 30 MiB without a single line end, and other containers are still heard.
  ASSERT_TRUE(spawner_->Start(Shell("flood", "head -c 31457280 /dev/zero; echo; echo end")).ok());
  ASSERT_TRUE(spawner_->Start(Shell("other", "echo heard")).ok());
  EXPECT_EQ(WaitFor("other").code, 0);
  EXPECT_EQ(WaitFor("flood").code, 0);
  EXPECT_EQ(ReadAll(folder_ / "other.log"), "heard\n");
  EXPECT_LE(std::filesystem::file_size(folder_ / "flood.log"), 10U << 20);
  EXPECT_LE(std::filesystem::file_size(folder_ / "flood.log.1"), 10U << 20);
  EXPECT_EQ(ReadAll(folder_ / "flood.log", {.tail_lines = 1}), "end\n");
}

using ContainerLogTest = FolderTest;

TEST_F(ContainerLogTest, LinesHaveTimeStreamAndTag) {
  const std::filesystem::path file = folder_ / "0.log";
  ContainerLog log(file, {});
  const WallTime now = *ParseTime("2026-11-21T10:00:00.5Z");
  log.Append(LogStream::kStdout, "one\ntw", now);
  log.Append(LogStream::kStderr, "err\n", now);
  log.Append(LogStream::kStdout, "o\nlast", now);
  log.Close(now);
  std::ifstream in(file);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(text,
            "2026-11-21T10:00:00.500000000Z stdout F one\n"
            "2026-11-21T10:00:00.500000000Z stderr F err\n"
            "2026-11-21T10:00:00.500000000Z stdout F two\n"
            "2026-11-21T10:00:00.500000000Z stdout F last\n");
  EXPECT_EQ(ReadAll(file), "one\nerr\ntwo\nlast\n");
  EXPECT_EQ(ReadAll(file, {.tail_lines = 2}), "two\nlast\n");
  EXPECT_EQ(ReadAll(file, {.tail_lines = 0}), "");
  EXPECT_EQ(ReadAll(file, {.limit_bytes = 5}), "one\ne");
  EXPECT_EQ(ReadAll(file, {.since = now + seconds(1)}), "");
  EXPECT_EQ(ReadAll(file, {.tail_lines = 1, .timestamps = true}),
            "2026-11-21T10:00:00.500000000Z last\n");
}

TEST_F(ContainerLogTest, LongLinesAreCutAndJoinedAgain) {
  ContainerLog log(folder_ / "0.log", {});
  const std::string line(3 * kMaxLogPiece + 5, 'x');
  log.Append(LogStream::kStdout, line + "\n", WallTime{});
  log.Close(WallTime{});
  EXPECT_EQ(ReadAll(folder_ / "0.log"), line + "\n");
}

TEST_F(ContainerLogTest, AFullLogIsRotatedOnceAndReadInOrder) {
  ContainerLog log(folder_ / "0.log", {.max_bytes = 400});
  for (int i = 0; i < 30; ++i) {
    log.Append(LogStream::kStdout, fmt::format("line {}\n", i), WallTime{});
  }
  log.Close(WallTime{});
  EXPECT_LE(std::filesystem::file_size(folder_ / "0.log"), 400U);
  EXPECT_LE(std::filesystem::file_size(folder_ / "0.log.1"), 400U);
  const std::string text = ReadAll(folder_ / "0.log");
  EXPECT_TRUE(text.ends_with("line 28\nline 29\n")) << text;
  EXPECT_EQ(ReadAll(folder_ / "0.log", {.tail_lines = 3}), "line 27\nline 28\nline 29\n");
}

TEST_F(ContainerLogTest, AReaderSeesWhatComesLater) {
  ContainerLog log(folder_ / "0.log", {});
  LogReader reader(folder_ / "0.log", {});
  std::string out;
  EXPECT_TRUE(reader.Next(out));
  EXPECT_EQ(out, "");
  log.Append(LogStream::kStdout, "now\n", WallTime{});
  EXPECT_TRUE(reader.Next(out));
  EXPECT_EQ(out, "now\n");
}

// The defect: it went on with the current file, and the one between was never read.
TEST_F(ContainerLogTest, AReaderThatIsTwoRotationsBehindMissesNothing) {
  ContainerLog log(folder_ / "0.log", {.max_bytes = 100});  // two lines of 41 bytes
  LogReader reader(folder_ / "0.log", {});
  std::string all;
  std::string out;
  for (int i = 0; i < 6; ++i) {
    log.Append(LogStream::kStdout, fmt::format("{}\n", i), WallTime{});
    all += fmt::format("{}\n", i);
    if (i == 0) reader.Next(out);
  }
  ASSERT_EQ(out, "0\n");
  for (int i = 0; i < 3; ++i) reader.Next(out);
  EXPECT_EQ(out, all);
}

// The same while both are at work: what is written between the end that the reader saw and the
// rotation must not be lost either.
TEST_F(ContainerLogTest, AReaderThatKeepsUpWithRotationsMissesNothing) {
  constexpr int kLines = 4'000;
  constexpr int kAhead = 3;  // lines, fewer than two files hold
  std::atomic<int> seen = 0;
  ContainerLog log(folder_ / "0.log", {.max_bytes = 100});
  std::jthread writer([&] {
    for (int i = 0; i < kLines; ++i) {
      while (i - seen.load() > kAhead) std::this_thread::yield();
      log.Append(LogStream::kStdout, fmt::format("{}\n", i), WallTime{});
    }
  });
  LogReader reader(folder_ / "0.log", {});
  std::string rest;
  bool right = true;
  while (seen < kLines && right) {
    reader.Next(rest);
    std::size_t begin = 0;
    for (std::size_t end = 0; right && (end = rest.find('\n', begin)) != rest.npos;
         begin = end + 1) {
      right = rest.substr(begin, end - begin) == std::to_string(seen);
      EXPECT_TRUE(right) << rest.substr(begin, end - begin) << " instead of " << seen;
      ++seen;
    }
    rest.erase(0, begin);
  }
  seen = kLines;  // lets the writer end, too
}

TEST_F(ContainerLogTest, ALogThatIsBegunAgainIsRotatedInTime) {
  for (int run = 0; run < 3; ++run) {
    ContainerLog log(folder_ / "0.log", {.max_bytes = 100});
    log.Append(LogStream::kStdout, "x\n", WallTime{});
    log.Close(WallTime{});
    EXPECT_LE(std::filesystem::file_size(folder_ / "0.log"), 100U);
  }
  EXPECT_EQ(ReadAll(folder_ / "0.log"), "x\nx\nx\n");
}

TEST(EnvironmentTest, ExpandsAsKubernetesDoes) {
  const Environment env = {{"A", "1"}, {"B", ""}};
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"$(A)", "1"},    {"x$(A)y", "x1y"},  {"$$(A)", "$(A)"}, {"$(C)", "$(C)"},
      {"$(B)", ""},     {"$A", "$A"},       {"$", "$"},        {"$(A", "$(A"},
      {"$$$(A)", "$1"}, {"$(A)$(A)", "11"}, {"a$$b", "a$b"},   {"", ""},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Expand(text, env), expected) << text;
}

PodSpec EnvironmentPod() {
  PodSpec pod;
  pod.name = "p";
  pod.name_space = "ns";
  pod.uid = "u";
  pod.node_name = "node-0";
  pod.annotations = {{"tahoma.dev/rank", "3"}};
  pod.labels = {{"app", "web"}};
  return pod;
}

absl::StatusOr<std::map<std::string, std::string>> ReadNames(KeyedObject, const std::string& name) {
  if (name == "absent") return NotFound("{} not found", name);
  return std::map<std::string, std::string>{{"k", "v of " + name}};
}

TEST(EnvironmentTest, ValuesComeFromFieldsMapsAndSecrets) {
  using Source = EnvVar::Source;
  ContainerSpec container{.name = "c"};
  container.env_from = {{.object = "all", .prefix = "P_"}, {.object = "absent", .optional = true}};
  container.env = {
      {.name = "RANK",
       .source = Source::kField,
       .value = "metadata.annotations['tahoma.dev/rank']"},
      {.name = "APP", .source = Source::kField, .value = "metadata.labels['app']"},
      {.name = "NONE", .source = Source::kField, .value = "metadata.labels['none']"},
      {.name = "NODE", .source = Source::kField, .value = "spec.nodeName"},
      {.name = "IP", .source = Source::kField, .value = "status.podIP"},
      {.name = "KEY", .source = Source::kConfigMapKey, .object = "m", .key = "k"},
      {.name = "MAYBE", .source = Source::kSecretKey, .object = "absent", .optional = true},
      {.name = "BOTH", .value = "$(RANK)/$(P_k)"},
  };
  const Environment env = *BuildEnvironment(EnvironmentPod(), container,
                                            {.host_ip = "h", .pod_ip = "127.0.0.1"}, ReadNames);
  EXPECT_EQ(env, (Environment{{"P_k", "v of all"},
                              {"RANK", "3"},
                              {"APP", "web"},
                              {"NONE", ""},
                              {"NODE", "node-0"},
                              {"IP", "127.0.0.1"},
                              {"KEY", "v of m"},
                              {"BOTH", "3/v of all"}}));
}

TEST(EnvironmentTest, WhatIsMissingIsNamed) {
  using Source = EnvVar::Source;
  const std::vector<std::pair<EnvVar, std::string>> bad = {
      {{.name = "A", .source = Source::kConfigMapKey, .object = "absent", .key = "k"}, "absent"},
      {{.name = "A", .source = Source::kConfigMapKey, .object = "m", .key = "q"}, "key q"},
      {{.name = "A", .source = Source::kField, .value = "spec.wrong"}, "spec.wrong"},
      {{.name = "A", .source = Source::kUnsupported, .value = "resourceFieldRef"}, "resourceField"},
  };
  for (const auto& [var, expected] : bad) {
    ContainerSpec container{.name = "c", .env = {var}};
    const absl::Status refused =
        BuildEnvironment(EnvironmentPod(), container, {}, ReadNames).status();
    EXPECT_NE(Message(refused).find(expected), std::string_view::npos) << refused;
    EXPECT_NE(Message(refused).find("env A"), std::string_view::npos) << refused;
  }
}

TEST(ImagesTest, UnknownImagesAndCommandsAreFailuresThatNameTheKnownOnes) {
  const ImageMap images = {{"tools:1", {.entrypoint = "/e", .commands = {{"sh", "/bin/sh"}}}},
                           {"bare:1", {.entrypoint = {}, .commands = {}}}};
  const auto failure = [&](const std::string& image, const std::vector<std::string>& command) {
    return std::get<StartFailure>(FindProgram(images, image, command, {}));
  };
  EXPECT_EQ(failure("other:1", {}).reason, "ErrImagePull");
  EXPECT_NE(failure("other:1", {}).message.find("bare:1, tools:1"), std::string::npos);
  EXPECT_EQ(failure("tools:1", {"bash"}).reason, "CreateContainerError");
  EXPECT_NE(failure("tools:1", {"bash"}).message.find("it has: sh"), std::string::npos);
  EXPECT_EQ(failure("bare:1", {}).reason, "CreateContainerError");
  const Program shell =
      std::get<Program>(FindProgram(images, "tools:1", {"/usr/bin/sh", "-c"}, {"true"}));
  EXPECT_EQ(shell.path, "/bin/sh");
  EXPECT_EQ(shell.argv, (std::vector<std::string>{"/usr/bin/sh", "-c", "true"}));
  EXPECT_EQ(std::get<Program>(FindProgram(images, "tools:1", {}, {"a"})).argv,
            (std::vector<std::string>{"/e", "a"}));
}

TEST(ImagesTest, ANameWithoutTagStandsForEveryTagAndDigest) {
  const ImageMap images = {{"r:5000/tools", {.entrypoint = "/any"}},
                           {"r:5000/tools:1", {.entrypoint = "/first"}},
                           {"plain", {.entrypoint = "/plain"}}};
  const auto entrypoint = [&](const std::string& image) {
    const auto found = FindImage(images, image);
    return found == images.end() ? "none" : found->second.entrypoint;
  };
  EXPECT_EQ(entrypoint("r:5000/tools:1"), "/first");
  EXPECT_EQ(entrypoint("r:5000/tools:2"), "/any");
  EXPECT_EQ(entrypoint("r:5000/tools:1@sha256:00"), "/any");
  EXPECT_EQ(entrypoint("r:5000/tools"), "/any");
  EXPECT_EQ(entrypoint("plain:9"), "/plain");
  EXPECT_EQ(entrypoint("r:5000/other:1"), "none");
}

using ToolFolderTest = FolderTest;

TEST_F(ToolFolderTest, AShellFindsTheCommandsThatTheMachineDoesNotHave) {
  Write("hello-of-image", "#!/bin/sh\necho hello\n");
  const std::string program = (folder_ / "hello-of-image").string();
  std::filesystem::permissions(program, std::filesystem::perms(0755));
  const ImageMap images = {{"bare:1", {.commands = {{"sh", "/bin/sh"}}}},
                           {"tools:1",
                            {.commands = {{"sh", "/bin/sh"},
                                          {"hello", program},
                                          {"missing", "/none/missing"},
                                          {"/bin/hello", program}}}}};
  for (int start = 0; start < 2; ++start) {  // the second start finds the folders of the first
    ASSERT_EQ(MakeToolFolders(images, folder_ / "t"), absl::OkStatus());
  }
  const std::string path = PathOf(images, "tools:1", folder_ / "t");
  EXPECT_TRUE(path.ends_with(fmt::format(":{}", kMachinePath))) << path;
  const std::vector<BoundFile> files = ToolFiles(images, "tools:1", folder_ / "t");
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0].target, "/opt/aws/neuron/bin");
  const std::filesystem::path tools = files[0].source;
  EXPECT_TRUE(path.starts_with(fmt::format("/opt/aws/neuron/bin:{}:", tools.string()))) << path;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(tools)) {
    names.push_back(entry.path().filename());
  }
  EXPECT_EQ(names, std::vector<std::string>{"hello"});
  EXPECT_EQ(std::filesystem::status(tools).permissions(), std::filesystem::perms(0755));
  EXPECT_NE(PathOf(images, "bare:1", folder_ / "t"), path) << "an image has its own commands alone";
  EXPECT_EQ(PathOf(images, "none:1", folder_ / "t"), kMachinePath);
}

using ContainerRootTest = FolderTest;

// Returns what `look` returns in a process that has entered the root; nothing where no process may
// make mounts.
std::optional<int> LookInside(const ContainerRoot& root, const std::function<int()>& look) {
  constexpr int kNoMounts = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0) _exit(kNoMounts);
    if (!root.Enter()) _exit(100 + errno);
    _exit(look());
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == kNoMounts) return std::nullopt;
  return WEXITSTATUS(status);
}

TEST_F(ContainerRootTest, FilesAreAtTheirPlacesForTheContainerAlone) {
  std::filesystem::create_directory(folder_ / "bin");
  Write("bin/tool", "");
  Write("chip", "");
  const ContainerRoot root =
      ContainerRoot::Plan({{.source = folder_ / "bin", .target = "/opt/tahoma-test/a/bin"},
                           {.source = folder_ / "chip", .target = "/dev/tahoma-test0"},
                           {.source = folder_ / "chip", .target = "/dev/tahoma-test/1"},
                           {.source = folder_ / "none", .target = "/opt/tahoma-test/none"}});
  const auto seen = LookInside(root, [&] {
    for (const char* there : {"/opt/tahoma-test/a/bin/tool", "/dev/tahoma-test0",
                              "/dev/tahoma-test/1", "/dev/null", "/dev/urandom", "/dev/fd/1"}) {
      if (access(there, R_OK) != 0) return 1;
    }
    if (access("/dev/null", W_OK) != 0) return 2;
    return access("/opt/tahoma-test/none", F_OK) == 0 ? 3 : 0;
  });
  if (!seen) GTEST_SKIP() << "nobody may make mounts here";
  EXPECT_EQ(*seen, 0);
  EXPECT_FALSE(std::filesystem::exists("/opt/tahoma-test"));
  EXPECT_FALSE(std::filesystem::exists("/dev/tahoma-test0"));
}

TEST_F(ContainerRootTest, ACoveredFolderKeepsItsEntriesAndTheMachinesFolderIsNotChanged) {
  std::filesystem::create_directories(folder_ / "m/sub");
  Write("m/file", "kept");
  Write("m/sub/inner", "");
  std::filesystem::create_symlink("file", folder_ / "m/link");
  Write("new", "");
  const ContainerRoot root = ContainerRoot::Plan({{folder_ / "new", folder_ / "m/new"},
                                                  {folder_ / "new", folder_ / "m/sub/new"},
                                                  {folder_ / "new", folder_ / "m/file"}});
  const auto seen = LookInside(root, [&] {
    const auto there = [&](const char* name) {
      return access((folder_ / "m" / name).c_str(), R_OK) == 0;
    };
    if (!there("sub/inner") || !there("sub/new") || !there("new") || !there("link")) return 1;
    return std::filesystem::file_size(folder_ / "m/file") == 0 ? 0 : 2;
  });
  if (!seen) GTEST_SKIP() << "nobody may make mounts here";
  EXPECT_EQ(*seen, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m/new"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m/sub/new"));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "m/file"), 4U);
}

TEST_F(ContainerRootTest, WithoutFilesNothingIsDone) {
  EXPECT_TRUE(ContainerRoot::Plan({}).empty());
  EXPECT_TRUE(ContainerRoot::Plan({{.source = "/tmp", .target = "/tmp"}}).empty());
  EXPECT_TRUE(ContainerRoot::Plan({{.source = "/tmp", .target = "relative"}}).empty());
  EXPECT_TRUE(ContainerRoot().Enter());
}

TEST_F(ContainerRootTest, VolumesAreMountedAlsoWhereTheMachinesRootLacksThePlace) {
  std::filesystem::create_directories(folder_ / "v/sub");
  Write("v/sub/file", "");
  ContainerRoot root = ContainerRoot::Plan({});
  ASSERT_TRUE(root.AddVolumes({{.source = folder_ / "v", .target = "/tahoma-test-volume"},
                               {.source = folder_ / "v",
                                .sub_path = "sub",
                                .target = "/tahoma-test-volume/below/",
                                .read_only = true}},
                              {}, {})
                  .ok());
  const auto seen = LookInside(root, [] {
    if (access("/tahoma-test-volume/below/file", R_OK) != 0) return 1;
    if (mkdir("/tahoma-test-volume/made", 0700) != 0) return 2;
    if (mkdir("/tahoma-test-volume/below/made", 0700) == 0 || errno != EROFS) return 3;
    if (access("/proc/self/status", R_OK) != 0 || access("/bin/sh", X_OK) != 0) return 4;
    return access("/dev/null", W_OK) == 0 ? 0 : 5;
  });
  if (!seen) GTEST_SKIP() << "nobody may make mounts here";
  EXPECT_EQ(*seen, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "v/made"));
  EXPECT_FALSE(std::filesystem::exists("/tahoma-test-volume"));
}

TEST_F(ContainerRootTest, BesideAVolumeInAFolderOfEverybodysFilesCanStillBeMade) {
  std::filesystem::create_directories(folder_ / "v");
  std::filesystem::create_directories(folder_ / "open/gone");
  std::filesystem::create_directories(folder_ / "open/kept");
  ASSERT_EQ(chmod((folder_ / "open").c_str(), 01777), 0);
  ContainerRoot root = ContainerRoot::Plan({});
  ASSERT_TRUE(
      root.AddVolumes({{.source = folder_ / "v", .target = folder_ / "open/new"}}, {}, {}).ok());
  std::filesystem::remove(folder_ / "open/gone");  // the plan has it
  const auto seen = LookInside(root, [&] {
    struct stat found = {};
    if (stat((folder_ / "open").c_str(), &found) != 0 || (found.st_mode & 07777) != 01777) return 1;
    std::ofstream(folder_ / "open/large") << std::string(3UL << 20U, 'x');
    if (std::filesystem::file_size(folder_ / "open/large") != 3UL << 20U) return 2;
    return std::filesystem::exists(folder_ / "open/kept") ? 0 : 3;
  });
  if (!seen) GTEST_SKIP() << "nobody may make mounts here";
  EXPECT_EQ(*seen, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "open/large"));
}

TEST_F(ContainerRootTest, AVolumeOverAFolderKeepsWhatTheContainerNeedsBelow) {
  std::filesystem::create_directories(folder_ / "v");
  std::filesystem::create_directories(folder_ / "machine/own");
  Write("machine/own/file", "");
  ContainerRoot root = ContainerRoot::Plan({});
  ASSERT_TRUE(root.AddVolumes({{.source = folder_ / "v", .target = folder_ / "machine"}}, {},
                              {folder_ / "machine/own", folder_ / "machine/none"})
                  .ok());
  const auto seen = LookInside(
      root, [&] { return access((folder_ / "machine/own/file").c_str(), R_OK) == 0 ? 0 : 1; });
  if (!seen) GTEST_SKIP() << "nobody may make mounts here";
  EXPECT_EQ(*seen, 0);
}

TEST_F(ContainerRootTest, NoVolumeLeavesItsFolderOrCoversWhatAContainerIs) {
  std::filesystem::create_directories(folder_ / "v");
  std::filesystem::create_symlink("/etc", folder_ / "v/out");
  std::filesystem::create_symlink("../..", folder_ / "v/up");
  std::filesystem::create_directories(folder_ / "e");
  const auto says = [&](const std::string& sub_path, const std::string& target) {
    ContainerRoot root;
    return std::string(Message(root.AddVolumes(
        {{.source = folder_ / "v", .sub_path = sub_path, .target = target}}, {}, {})));
  };
  for (const char* path : {"..", "a/../..", "/etc"}) {
    EXPECT_NE(says(path, "/x").find("leaves its volume"), std::string::npos) << path;
  }
  for (const char* path : {"out", "out/new", "up", "up/new"})
    EXPECT_NE(says(path, "/x"), "") << path;
  EXPECT_EQ(says("new/deep", "/x"), "");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "v/new/deep"));
  for (const char* place : {"/", "//", "/a/..", "/proc", "/proc/1", "/sys/fs", "relative"}) {
    EXPECT_NE(says("", place), "") << place;
  }
  ContainerRoot root;
  EXPECT_FALSE(root.AddVolumes({{.source = folder_ / "v", .target = "/x"},
                                {.source = folder_ / "e", .target = "/x/out/tahoma-test"}},
                               {}, {})
                   .ok());
  EXPECT_FALSE(std::filesystem::exists("/etc/tahoma-test"));
}

TEST_F(ContainerRootTest, APlaceThatAPodChoseIsNotChangedAndNoLinkLeadsElsewhere) {
  std::filesystem::create_directories(folder_ / "m");
  std::filesystem::create_directories(folder_ / "e");
  const VolumeBind chosen{.source = folder_ / "m", .target = "/x", .chosen = true};
  ContainerRoot root;
  EXPECT_FALSE(
      root.AddVolumes({chosen, {.source = folder_ / "e", .target = "/x/new"}}, {}, {}).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "m"));
  ContainerRoot swapped;
  ASSERT_TRUE(swapped.AddVolumes({chosen}, {}, {}).ok());
  std::filesystem::remove(folder_ / "m");
  std::filesystem::create_directory_symlink("/etc", folder_ / "m");
  const auto seen = LookInside(swapped, [] { return 0; });
  if (!seen) GTEST_SKIP() << "nobody may make mounts here";
  EXPECT_EQ(*seen, 100 + ELOOP);
}

TEST_F(ContainerRootTest, FilesOfAClaimAreThoseOfWhoeverMountsIt) {
  if (geteuid() != 0) GTEST_SKIP() << "takes root";
  constexpr uid_t kFirst = 2'099'000'001;
  std::filesystem::create_directory(folder_ / "v");
  int number = 0;
  for (const uid_t user : {kFirst, kFirst + 1}) {
    ContainerRoot root;
    ASSERT_TRUE(
        root.AddVolumes({{.source = folder_ / "v", .target = "/tahoma-v", .owned = true}}, user, {})
            .ok());
    const auto seen = LookInside(root, [&] {
      umask(0077);
      if (!BecomeUser(user)) return 1;
      if (user == kFirst) return open("/tahoma-v/file", O_CREAT | O_WRONLY, 0600) >= 0 ? 0 : 2;
      return access("/tahoma-v/file", R_OK | W_OK) == 0 ? 0 : 3;
    });
    if (!seen) GTEST_SKIP() << "nobody may make mounts here";
    EXPECT_EQ(*seen, 0) << "user " << number++;
  }
}

class PodVolumesTest : public FolderTest {
 protected:
  absl::StatusOr<std::vector<VolumeBind>> For(const VolumeSpec& volume) {
    const PodVolumes volumes(
        folder_ / "own", folder_ / "memory", std::nullopt,
        {.read = [&](KeyedObject, const std::string& name)
             -> absl::StatusOr<std::map<std::string, std::string>> {
           if (name != "c") return NotFound("{} not found", name);
           return entries_;
         },
         .find_claim = [&](const std::string&) -> absl::StatusOr<HostVolume> {
           return HostVolume{.path = folder_ / "claim", .path_type = "DirectoryOrCreate"};
         },
         .field = [](const std::string& path) -> absl::StatusOr<std::string> { return path; },
         .token = [](const FileSource&) -> absl::StatusOr<std::string> { return "t"; }});
    PodSpec pod;
    pod.volumes = {volume};
    pod.mounts["main"] = {
        {.volume = volume.name, .path = "/m", .sub_path = "$(A)", .expands = true}};
    return volumes.For(pod, "main", {{"A", "a"}});
  }
  std::string SaysOf(const std::vector<FileSource>& sources) {
    const auto binds =
        For({.name = "v", .kind = VolumeSpec::Kind::kFiles, .mode = 0644, .sources = sources});
    return std::string(Message(binds.status()));
  }
  std::map<std::string, std::string> entries_ = {{"k", "text"}};
};

TEST_F(PodVolumesTest, FilesHaveTheirPathsAndModes) {
  const auto binds = For({.name = "v",
                          .kind = VolumeSpec::Kind::kFiles,
                          .sources = {{.object = "c", .files = {{"k", "deep/k", 0400}}},
                                      {.object = "c"},
                                      {.object = "none", .optional = true},
                                      {.kind = FileSource::Kind::kFields, .files = {{"f", "f"}}},
                                      {.kind = FileSource::Kind::kToken, .files = {{"", "tok"}}}}});
  ASSERT_TRUE(binds.ok()) << binds.status();
  EXPECT_EQ(binds->at(0).sub_path, "a");
  EXPECT_TRUE(binds->at(0).read_only);
  const std::filesystem::path made = binds->at(0).source;
  EXPECT_EQ(*ReadFile(made / "deep/k"), "text");
  EXPECT_EQ(std::filesystem::status(made / "deep/k").permissions(), std::filesystem::perms(0400));
  EXPECT_EQ(*ReadFile(made / "f"), "f");
  EXPECT_EQ(*ReadFile(made / "tok"), "t");
}

TEST_F(PodVolumesTest, NoKeyOrPathLeavesTheVolumeAndNothingIsHalfMade) {
  for (const char* path : {"", "/etc/x", "../x", "a/../../x", "..x", "a/", "."}) {
    EXPECT_NE(SaysOf({{.object = "c", .files = {{"k", path}}}}), "") << path;
  }
  EXPECT_EQ(SaysOf({{.object = "c", .files = {{"none", "p"}}}}),
            "volume v: references non-existent config key: none");
  EXPECT_EQ(SaysOf({{.object = "none"}}), "volume v: none not found");
  entries_ = {{"a/b", ""}};
  EXPECT_EQ(SaysOf({{.object = "c"}}), "volume v: key \"a/b\" is no file");
  entries_ = {{"huge", std::string(20UL << 20U, 'x')}};
  EXPECT_NE(SaysOf({{.object = "c", .files = {{"huge", "1"}, {"huge", "2"}}}}), "");
  entries_ = {{"k", "v"}};
  EXPECT_EQ(SaysOf({{.object = "c"}}), "") << "the next attempt starts anew";
}

TEST_F(PodVolumesTest, AMissingFolderOfAVolumeIsMadeAndAHostPathOfAWrongTypeRefused) {
  const auto claim = For({.name = "c", .kind = VolumeSpec::Kind::kClaim, .what = "data"});
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "claim"));
  EXPECT_TRUE(claim->at(0).owned);
  Write("file", "");
  for (const char* type : {"Directory", "DirectoryOrCreate"}) {
    EXPECT_FALSE(For({.name = "h",
                      .kind = VolumeSpec::Kind::kHostPath,
                      .what = folder_ / "file",
                      .path_type = type})
                     .ok());
  }
  EXPECT_FALSE(For({.name = "h", .kind = VolumeSpec::Kind::kHostPath, .what = "relative"}).ok());
}

using CdiTest = FolderTest;

TEST_F(CdiTest, OnlyTheAskedDevicesAreApplied) {
  Write("a.json", R"({"cdiVersion":"0.5.0","kind":"v.com/device",
    "containerEdits":{"env":["ALL=1"]},
    "devices":[{"name":"one","containerEdits":{"env":["ONE=a=b"],
                 "mounts":[{"hostPath":"/tmp","containerPath":"/x"}]}},
               {"name":"two","containerEdits":{"env":["TWO=2"],
                 "deviceNodes":[{"path":"/dev/neuron0"}]}}]})");
  Write("other.json", R"({"kind":"v.com/other","devices":[{"name":"one"}]})");
  const CdiEdits edits = *ReadCdi(folder_, {"v.com/device=one"});
  ASSERT_EQ(edits.env.size(), 2U);
  EXPECT_EQ(edits.env[0], (std::pair<std::string, std::string>("ALL", "1")));
  EXPECT_EQ(edits.env[1], (std::pair<std::string, std::string>("ONE", "a=b")));
  EXPECT_EQ(edits.mounts, (std::vector<BoundFile>{{.source = "/tmp", .target = "/x"}}));
  EXPECT_EQ(ReadCdi(folder_, {"v.com/device=two"})->not_applied,
            (std::vector<std::string>{"deviceNodes"}));
  EXPECT_TRUE(ReadCdi(folder_, {})->env.empty());
}

TEST_F(CdiTest, MissingDevicesAndBrokenSpecsAreErrors) {
  EXPECT_EQ(ReadCdi(folder_, {"v.com/device=one"}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadCdi(folder_ / "none", {"v.com/device=one"}).status().code(),
            absl::StatusCode::kNotFound);
  Write("bad.json", "{");
  const absl::Status broken = ReadCdi(folder_, {"v.com/device=one"}).status();
  EXPECT_EQ(broken.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Message(broken).find("bad.json"), std::string_view::npos);
}

// The defects: such specs were read in part, and of two devices the first was taken.
TEST_F(CdiTest, WhatARuntimeRefusesIsRefusedHereToo) {
  struct Case {
    std::string spec;
    std::string says;
  };
  for (const Case& c : std::vector<Case>{
           {R"({"kind":"v.com/d","devices":[{"name":"one"}],"more":1})",
            "the spec has the unknown field \"more\""},
           {R"({"kind":"v.com/d","devices":[{"name":"one","env":["A=1"]}]})",
            "a device has the unknown field \"env\""},
           {R"({"kind":"v.com/d","devices":[{"name":"one","containerEdits":{"envs":["A=1"]}}]})",
            "device one's edits has the unknown field \"envs\""},
           {R"({"kind":"v.com/d","devices":[{"name":"one"}],"containerEdits":{"mount":[]}})",
            "the spec's edits has the unknown field \"mount\""},
           {R"({"kind":"v.com/d","devices":[{"name":"one","containerEdits":[]}]})",
            "device one's edits is no object"},
           {R"({"kind":"v.com/d","devices":[{"name":"one"},{"name":"one"}]})",
            "two devices are named one"},
           {R"({"kind":"v.com/d","devices":[{"name":"one"},"two"]})", "a device is no object"},
           {R"({"kind":"v.com/d","devices":[{"name":"one"},{}]})", "a device has no name"}}) {
    Write("a.json", c.spec);
    const absl::Status refused = ReadCdi(folder_, {"v.com/d=one"}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << c.spec;
    EXPECT_NE(Message(refused).find(c.says), std::string_view::npos) << refused;
    EXPECT_NE(Message(refused).find("a.json"), std::string_view::npos) << refused;
  }
}

TEST_F(CdiTest, ADeviceInTwoSpecsIsRefusedAndABrokenSpecOfOthersIsNot) {
  Write("a.json", R"({"kind":"v.com/d","devices":[{"name":"one"},{"name":"two"}]})");
  Write("b.json", R"({"kind":"v.com/d","devices":[{"name":"one"}]})");
  Write("c.json", R"({"kind":"v.com/e","devices":[{"name":"one"}],"more":1})");
  const absl::Status refused = ReadCdi(folder_, {"v.com/d=one"}).status();
  EXPECT_NE(Message(refused).find("CDI device v.com/d=one is in two specs"), std::string_view::npos)
      << refused;
  EXPECT_TRUE(ReadCdi(folder_, {"v.com/d=two"}).ok());
}

TEST_F(CdiTest, FilesOfAllKindsOfNonsenseNameThemselves) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{\"kind\":3,\"devices\":[]}"),
        std::string("{\"kind\":\"v\"}"), std::string("{\"kind\":\"v\",\"devices\":{}}"),
        std::string("\0\0", 2), std::string("{\"kind\":\"\xff\",\"devices\":[]}"),
        std::string(100'000, '['), std::string(kMaxCdiSpecBytes + 1, ' ')}) {
    Write("bad.json", text);
    const absl::Status refused = ReadCdi(folder_, {"v.com/d=one"}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << text.substr(0, 20);
    EXPECT_NE(Message(refused).find("bad.json"), std::string_view::npos) << refused;
  }
}

}  // namespace
}  // namespace tahoma::sim
