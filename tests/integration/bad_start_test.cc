// Programs that cannot start as they were told: each ends soon, with one message that says what is
// wrong, where, and what would be right, and leaves everything as it found it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/store/store.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "tests/integration/standalone.h"
#include "tests/support/child_program.h"
#include "tests/support/patience.h"
#include "tests/support/temp_dir.h"

namespace tahoma {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::Bin;
using testing::ChildProgram;
using ::testing::HasSubstr;
using testing::Standalone;
using testing::TempDir;
using Words = std::vector<std::string>;

constexpr std::chrono::seconds kPatience = testing::Patience(30);

struct End {
  std::optional<int> status;
  std::string said;
};

// Runs a program that is expected to end by itself.
End RunToEnd(const Words& arguments) {
  const TempDir own;
  ChildProgram program(arguments, own.path() + "/log");
  const std::optional<int> status = program.Wait();
  return {status, program.log()};
}

// The command line with other values of some flags, and more of them.
Words With(Words arguments, const Words& more) {
  for (const std::string& word : more) {
    const auto known = std::find(arguments.begin(), arguments.end(), word);
    if (word.starts_with("--") && known != arguments.end()) arguments.erase(known, known + 2);
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void Write(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// Every file below a folder with its content.
std::map<std::string, std::string> ContentOf(const fs::path& folder) {
  std::map<std::string, std::string> content;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      content[entry.path().lexically_relative(folder)] = ReadAll(entry.path());
    }
  }
  return content;
}

// ---- All three programs ------------------------------------------------------------------------

struct Program {
  std::string name;
  std::string kind;
  std::string wrong_key;
  std::string right_key;
  std::string wrong_flag;
  std::string right_flag;
};

class EveryProgram : public ::testing::TestWithParam<Program> {
 protected:
  std::string WriteConfig(const std::string& text) {
    const std::string path = dir_.path() + "/config.yaml";
    Write(path, text);
    return path;
  }
  std::string Head() const {
    return fmt::format("apiVersion: tahoma.dev/v1alpha1\nkind: {}\n", GetParam().kind);
  }
  TempDir dir_;
};

TEST_P(EveryProgram, NamesFileLineAndNearestKeyOfAnUnknownKeyInItsConfiguration) {
  const Program& program = GetParam();
  const std::string config = WriteConfig(Head() + program.wrong_key + ": x\n");
  const End end = RunToEnd({Bin(program.name), "--config", config});
  EXPECT_EQ(end.status, 2);
  EXPECT_EQ(end.said, fmt::format("{}: {}:3: {}: unknown key; did you mean \"{}\"?\n", program.name,
                                  config, program.wrong_key, program.right_key));
}

TEST_P(EveryProgram, NamesTheNearestOfAnUnknownFlag) {
  const Program& program = GetParam();
  const End end = RunToEnd({Bin(program.name), program.wrong_flag, "x"});
  EXPECT_EQ(end.status, 2);
  EXPECT_EQ(end.said, fmt::format("{}: unknown argument {}; did you mean {}?\n", program.name,
                                  program.wrong_flag, program.right_flag));
}

TEST_P(EveryProgram, WantsItsOwnKindOfConfiguration) {
  const Program& program = GetParam();
  const std::string config = WriteConfig("apiVersion: tahoma.dev/v1alpha1\nkind: Other\n");
  const End end = RunToEnd({Bin(program.name), "--config", config});
  EXPECT_EQ(end.status, 2);
  EXPECT_EQ(end.said, fmt::format("{}: {}:2: kind: \"Other\" is not supported; expected {}\n",
                                  program.name, config, program.kind));
}

TEST_P(EveryProgram, SaysThatItsConfigurationCannotBeRead) {
  const Program& program = GetParam();
  const std::string config = dir_.path() + "/none.yaml";
  const End end = RunToEnd({Bin(program.name), "--config", config});
  EXPECT_EQ(end.status, 2);
  EXPECT_EQ(end.said, fmt::format("{}: --config: cannot read {}\n", program.name, config));
}

INSTANTIATE_TEST_SUITE_P(, EveryProgram,
                         ::testing::Values(Program{"controller", "ControllerConfig", "dataDri",
                                                   "dataDir", "--data-dri", "--data-dir"},
                                           Program{"sim-node", "SimNodeConfig", "nodeNaem",
                                                   "nodeName", "--node-naem", "--node-name"},
                                           Program{"dra-plugin", "DraPluginConfig", "nodeNaem",
                                                   "nodeName", "--node-naem", "--node-name"}),
                         [](const auto& program) {
                           std::string name = program.param.name;
                           std::erase(name, '-');
                           return name;
                         });

// ---- controller --------------------------------------------------------------------------------

class BadController : public ::testing::Test {
 protected:
  std::string data() const { return dir_.path() + "/data"; }
  // The usual command line with other values.
  End Run(const Words& more) {
    return RunToEnd(With(testing::RealController(data(), dir_.path() + "/second-ports"), more));
  }
  TempDir dir_;
};

TEST_F(BadController, ASecondOneOnTheSameFolderIsRefusedAndTheFirstGoesOn) {
  Standalone first(dir_.path(), testing::RealController);
  ASSERT_TRUE(first.started()) << first.program().log();
  const End second = Run({});
  EXPECT_EQ(second.status, 1);
  EXPECT_THAT(second.said, HasSubstr(fmt::format("the store in {} is in use by process ", data())));
  EXPECT_THAT(second.said, HasSubstr("stop that controller or use another dataDir"));
  EXPECT_FALSE(fs::exists(dir_.path() + "/second-ports"));
  const Json ns = {
      {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "afterwards"}}}};
  EXPECT_EQ(testing::Send(first.api(), "POST", "/api/v1/namespaces", ns), 201);
}

TEST_F(BadController, APortInUseIsNamedWithItsOptionBeforeAnythingIsWritten) {
  const TempDir other;
  Standalone first(other.path(), testing::RealController);
  ASSERT_TRUE(first.started()) << first.program().log();
  const std::string ports = ReadAll(other.path() + "/ports");
  const std::string address = ports.substr(15, ports.find('\n') - 15);
  for (const auto& [flag, option] : {std::pair("--listen-address", "listenAddress"),
                                     std::pair("--admin-address", "adminAddress")}) {
    const End end = Run({flag, address});
    EXPECT_EQ(end.status, 1);
    EXPECT_EQ(end.said,
              fmt::format("controller: {}: {} is in use by another program\n", option, address));
    EXPECT_FALSE(fs::exists(data()));
  }
  const End cluster = RunToEnd({Bin("controller"), "--data-dir", data(), "--admin-address", address,
                                "--kubeconfig", "examples/none"});
  EXPECT_EQ(cluster.status, 1);
  EXPECT_THAT(cluster.said, HasSubstr(address + " is in use by another program"));
  EXPECT_FALSE(fs::exists(data()));
}

TEST_F(BadController, AFileThatIsMissingOrWrongIsNamedWithItsOptionBeforeAnythingIsWritten) {
  Write(dir_.path() + "/empty", "\n");
  fs::permissions(dir_.path() + "/empty", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_directories(dir_.path() + "/folder");
  struct Case {
    Words more;
    std::string says;
  };
  const std::string none = dir_.path() + "/none";
  for (const Case& c : std::vector<Case>{
           {{"--token-file", none},
            fmt::format("tokenFile: {}: cannot be opened: No such file or directory", none)},
           {{"--token-file", dir_.path() + "/empty"},
            fmt::format("tokenFile: {}/empty holds no token", dir_.path())},
           {{"--token-file", dir_.path() + "/folder"},
            fmt::format("tokenFile: {}/folder: cannot be read: Is a directory", dir_.path())},
           {{"--crd-dir", none}, fmt::format("crdDir {}: No such file or directory", none)},
           {{"--crd-dir", dir_.path() + "/folder"},
            fmt::format("crdDir {}/folder has no .yaml file", dir_.path())},
           {{"--tls-cert-file", none, "--tls-key-file", none}, none},
           {{"--listen-address", "127.0.0.1"},
            "listenAddress: \"127.0.0.1\" is not an address; expected host:port, for example "
            "127.0.0.1:8001"},
           {{"--admin-address", "0.0.0.0:0"},
            "adminAddress 0.0.0.0:0 can be reached from outside: give a tokenFile or an "
            "identityFile, or a loopback address"}}) {
    SCOPED_TRACE(c.says);
    const End end = Run(c.more);
    EXPECT_EQ(end.status, 1);
    EXPECT_THAT(end.said, AllOf(HasSubstr(c.says), ::testing::StartsWith("controller: ")));
    EXPECT_EQ(std::count(end.said.begin(), end.said.end(), '\n'), 1) << end.said;
    EXPECT_FALSE(fs::exists(data()));
  }
}

TEST_F(BadController, ADamagedStoreIsLeftAsItIsAndTheMessageSaysWhatToDo) {
  {
    Standalone first(dir_.path(), testing::RealController);
    ASSERT_TRUE(first.started()) << first.program().log();
    first.program().Kill(SIGTERM);
    ASSERT_EQ(first.program().Wait(), 0);
  }
  const std::string current = ReadAll(data() + "/CURRENT");
  Write(data() + "/CURRENT", "MANIF");
  const auto before = ContentOf(data());
  const End end = Run({});
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.said, AllOf(HasSubstr(fmt::format("the store in {} is damaged", data())),
                              HasSubstr("CURRENT"), HasSubstr("restore it from a backup")));
  EXPECT_EQ(ContentOf(data()), before);
  Write(data() + "/CURRENT", current);
  const Standalone mended(dir_.path(), testing::RealController);
  EXPECT_TRUE(mended.started()) << "as before the damage";
}

TEST_F(BadController, AStoreOfAnotherFormatIsRefused) {
  {
    auto store = controller::Store::Open({.dir = data()});
    ASSERT_TRUE(store.ok()) << store.status();
    controller::WriteBatch batch;
    batch.Put(controller::Keyspace::kMeta, "format", "99");
    ASSERT_TRUE((*store)->Commit(std::move(batch)).ok());
  }
  const End end = Run({});
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.said,
              HasSubstr(fmt::format("the store in {} has format 99, this program reads format 1; "
                                    "use the program that wrote it",
                                    data())));
}

TEST_F(BadController, ATimeScaleIsRefusedForAStoreThatIsNotATests) {
  {
    Standalone first(dir_.path(), testing::RealController);
    ASSERT_TRUE(first.started()) << first.program().log();
    first.program().Kill(SIGTERM);
    ASSERT_EQ(first.program().Wait(), 0);
  }
  const End end = Run({"--time-scale", "1440"});
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.said, HasSubstr(fmt::format("timeScale: the store in {} was created without it, "
                                              "and its Capacity Blocks are no test; leave "
                                              "timeScale out, or begin in another dataDir",
                                              data())));
  const Standalone again(dir_.path(), testing::RealController);
  EXPECT_TRUE(again.started()) << "as before the attempt";
}

TEST_F(BadController, AFileThatIsNotACrdIsNamed) {
  Write(dir_.path() + "/crds/bad.yaml", "kind: ConfigMap\napiVersion: v1\n");
  const End end = Run({"--crd-dir", dir_.path() + "/crds"});
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.said, AllOf(HasSubstr(dir_.path() + "/crds/bad.yaml"),
                              HasSubstr("CustomResourceDefinition")));
}

// ---- sim-node ----------------------------------------------------------------------------------

class BadSimNode : public ::testing::Test {
 protected:
  Words Command(const Words& more) const {
    return With({Bin("sim-node"), "--node-name", "a", "--node-socket", socket(), "--admin-address",
                 "127.0.0.1:0", "--state-dir", dir_.path() + "/s"},
                more);
  }
  std::string socket() const { return dir_.path() + "/node.sock"; }
  TempDir dir_;
};

TEST_F(BadSimNode, SaysWhatIsWrongAndWhatWouldBeRight) {
  struct Case {
    Words more;
    std::string says;
  };
  const std::string none = dir_.path() + "/none";
  for (const Case& c : std::vector<Case>{
           {{"--instance-type", "trn2.49xlarge"},
            "instanceType \"trn2.49xlarge\" is unknown; known are inf2"},
           {{"--instance-type", "trn2.48xlarge", "--ultra-server.id", "us-1"},
            "ultraServer is set, but trn2.48xlarge does not form UltraServers"},
           {{"--ultra-server.node-id", "4"}, "--ultra-server.node-id"},
           {{"--network-layers", "nn-1"},
            "networkLayers has 1 entries; expected three, top first, or none"},
           {{"--admin-token-file", none},
            fmt::format("adminTokenFile: {}: cannot be opened: No such file or directory", none)},
           {{"--pod-runner.enabled"}, "podRunner.kubeconfig is empty"},
           {{"--pod-runner.enabled", "--pod-runner.kubeconfig", none}, none}}) {
    SCOPED_TRACE(c.says);
    const End end = RunToEnd(Command(c.more));
    EXPECT_THAT(end.status, ::testing::AnyOf(1, 2));
    EXPECT_THAT(end.said, HasSubstr(c.says));
    EXPECT_FALSE(fs::exists(socket())) << "left behind";
  }
}

TEST_F(BadSimNode, ASecondOneOnTheSameSocketIsRefusedAndTheFirstGoesOn) {
  ChildProgram first(Command({"--port-file", dir_.path() + "/ports"}), dir_.path() + "/log");
  ASSERT_TRUE(first.WaitUntil([&] { return fs::exists(dir_.path() + "/ports"); }, kPatience))
      << first.log();
  const End second = RunToEnd(Command({}));
  EXPECT_EQ(second.status, 1);
  EXPECT_THAT(second.said, HasSubstr("nodeSocket: "));
  EXPECT_THAT(second.said, HasSubstr(socket()));
  EXPECT_TRUE(fs::exists(socket()));
  EXPECT_FALSE(first.WaitEnd(std::chrono::milliseconds(0))) << first.log();
}

// ---- dra-plugin --------------------------------------------------------------------------------

class BadPlugin : public ::testing::Test {
 protected:
  BadPlugin() {
    Write(kubeconfig(),
          "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: "
          "\"http://127.0.0.1:1\"}}]\nusers: [{name: u, user: {}}]\ncontexts: [{name: x, context: "
          "{cluster: c, user: u}}]\ncurrent-context: x\n");
  }
  Words Command(const Words& more = {}) const {
    return With({Bin("dra-plugin"), "--node-name", "a", "--node-socket", dir_.path() + "/n",
                 "--kubeconfig", kubeconfig(), "--plugin-dir", dir_.path() + "/p", "--registry-dir",
                 dir_.path() + "/r", "--cdi-dir", dir_.path() + "/c"},
                more);
  }
  std::string kubeconfig() const { return dir_.path() + "/kubeconfig"; }
  std::string checkpoint() const { return dir_.path() + "/p/neuron.aws.com/claims.json"; }
  std::string registration() const { return dir_.path() + "/r/neuron.aws.com-reg.sock"; }
  TempDir dir_;
};

TEST_F(BadPlugin, ADamagedCheckpointIsNamedAndNothingIsChanged) {
  for (const std::string text : {"", "{\"claims\":[", "{\"format\":\"other\",\"version\":1}",
                                 "{\"format\":\"tahoma-dra-checkpoint\",\"version\":99}"}) {
    SCOPED_TRACE(text);
    Write(checkpoint(), text);
    Write(dir_.path() + "/c/neuron.aws.com-device_uid-x.json", "{}");
    const End end = RunToEnd(Command());
    EXPECT_EQ(end.status, 1);
    EXPECT_THAT(end.said,
                AllOf(HasSubstr(fmt::format("the checkpoint {} is damaged: ", checkpoint())),
                      HasSubstr("Nothing was changed. Restore the file, or drain this node's pods "
                                "that use neuron.aws.com devices and then delete it")));
    EXPECT_EQ(ReadAll(checkpoint()), text);
    EXPECT_EQ(ReadAll(dir_.path() + "/c/neuron.aws.com-device_uid-x.json"), "{}");
    EXPECT_FALSE(fs::exists(registration()));
  }
}

TEST_F(BadPlugin, ASecondOneOnTheSameFoldersIsRefusedAndTheFirstGoesOn) {
  ChildProgram first(Command(), dir_.path() + "/log");
  ASSERT_TRUE(first.WaitUntil([&] { return fs::exists(registration()); }, kPatience))
      << first.log();
  const End second = RunToEnd(Command());
  EXPECT_EQ(second.status, 1);
  EXPECT_THAT(second.said, HasSubstr("dra.sock"));
  EXPECT_TRUE(fs::exists(registration()));
  EXPECT_FALSE(first.WaitEnd(std::chrono::milliseconds(0))) << first.log();
}

TEST_F(BadPlugin, SaysWhatIsWrongAndWhatWouldBeRight) {
  struct Case {
    Words more;
    std::string says;
  };
  const std::string none = dir_.path() + "/none";
  for (const Case& c :
       std::vector<Case>{{{"--node-name", ""}, "nodeName is empty; name the node"},
                         {{"--node-socket", ""}, "nodeSocket is empty; say where sim-node listens"},
                         {{"--publish", "chips,cores"}, "cores"},
                         {{"--node-lost-after", "1ms"}, "--node-lost-after"},
                         {{"--kubeconfig", none}, none}}) {
    SCOPED_TRACE(c.says);
    const End end = RunToEnd(Command(c.more));
    EXPECT_THAT(end.status, ::testing::AnyOf(1, 2));
    EXPECT_THAT(end.said, HasSubstr(c.says));
    EXPECT_FALSE(fs::exists(registration()));
  }
}

}  // namespace
}  // namespace tahoma
