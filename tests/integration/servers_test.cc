// The programs' HTTP servers and clients as their options tell them: by which names they may be
// called, what a reader of backups leaves in the audit, and what is said about tokens in the clear.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/json.h"
#include "tests/integration/standalone.h"
#include "tests/support/child_program.h"
#include "tests/support/patience.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/lib/rest/raw_client.h"

namespace tahoma {
namespace {

namespace fs = std::filesystem;
using testing::Bin;
using testing::ChildProgram;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TempDir;
using Words = std::vector<std::string>;

constexpr std::chrono::seconds kPatience = testing::Patience(30);

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The port behind `key` in a port file, or 0.
int PortIn(const std::string& port_file, const std::string& key) {
  const std::string text = ReadAll(port_file);
  const std::size_t at = text.find(key + ": ");
  if (at == std::string::npos) return 0;
  const std::string line = text.substr(at, text.find('\n', at) - at);
  return std::atoi(line.c_str() + line.rfind(':') + 1);
}

// The answer to a GET by that name.
std::string Ask(int port, const std::string& host, const std::string& target) {
  return testing::RawClient(port).Ask(
      fmt::format("GET {} HTTP/1.1\r\nHost: {}:{}\r\n\r\n", target, host, port));
}

class ServersTest : public ::testing::Test {
 protected:
  // A standalone controller with more words on its command line.
  void StartController(const Words& more) {
    controller_ = std::make_unique<testing::Standalone>(
        dir_.path(), [&](const std::string& data, const std::string& port_file) {
          Words words = testing::RealController(data, port_file);
          words.insert(words.end(), more.begin(), more.end());
          return words;
        });
    ASSERT_TRUE(controller_->started()) << controller_->program().log();
  }
  int ControllerPort(const std::string& key) { return PortIn(dir_.path() + "/ports", key); }

  const TempDir dir_;
  std::unique_ptr<testing::Standalone> controller_;
};

TEST_F(ServersTest, BothApisOfTheControllerAnswerToTheirAllowedHosts) {
  StartController({"--allowed-hosts", "tahoma.example,10.0.0.5"});
  const int api = ControllerPort("listenAddress");
  const int admin = ControllerPort("adminAddress");
  for (const char* host : {"tahoma.example", "10.0.0.5", "localhost"}) {
    EXPECT_THAT(Ask(api, host, "/api/v1/nodes"), StartsWith("HTTP/1.1 200 ")) << host;
    EXPECT_THAT(Ask(admin, host, "/v1/nodes"), StartsWith("HTTP/1.1 200 ")) << host;
  }
  const std::string by_api = Ask(api, "evil.example", "/api/v1/nodes");
  EXPECT_THAT(by_api, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(by_api, HasSubstr(R"("kind":"Status")"));
  const std::string by_admin = Ask(admin, "evil.example", "/v1/nodes");
  EXPECT_THAT(by_admin, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(by_admin, HasSubstr("Content-Type: application/problem+json"));
}

TEST_F(ServersTest, ABackupThatIsReadIsInTheAudit) {
  StartController({"--audit-file", dir_.path() + "/audit"});
  const int admin = ControllerPort("adminAddress");
  ChildProgram reader({Bin("controller"), "backup", "--admin-url",
                       fmt::format("http://127.0.0.1:{}", admin), dir_.path() + "/backup"},
                      dir_.path() + "/reader.log");
  ASSERT_EQ(reader.Wait(), 0) << reader.log();
  ASSERT_TRUE(controller_->Eventually([&] { return ReadAll(dir_.path() + "/audit") != ""; }));
  const Json line = ParseJson(ReadAll(dir_.path() + "/audit"));
  EXPECT_EQ(line.at("requestURI"), "/v1/backup");
  EXPECT_EQ(line.at("user").at("username"), "system:unsecured");
  EXPECT_EQ(line.at("responseStatus").at("code"), 200);
}

TEST_F(ServersTest, TheServersOfANodeAnswerToTheirAllowedHosts) {
  const std::string kubeconfig = dir_.path() + "/kubeconfig";
  StartController({"--write-kubeconfig", kubeconfig});
  const std::string folder = dir_.path() + "/n";
  std::ofstream(dir_.path() + "/node.yaml") << fmt::format(
      "apiVersion: tahoma.dev/v1alpha1\nkind: SimNodeConfig\nnodeName: n\nnodeSocket: {0}/s/n\n"
      "stateDir: {0}\nportFile: {0}.ports\nallowedHosts: [node.example]\npodRunner:\n"
      "  enabled: true\n  kubeconfig: {1}\n  registryDir: {0}/r\n  cdiDir: {0}/c\n"
      "  logTls: false\n  podUser: same\n",
      folder, kubeconfig);
  ChildProgram node({Bin("sim-node"), "--config", dir_.path() + "/node.yaml"},
                    dir_.path() + "/node.log");
  ASSERT_TRUE(node.WaitUntil([&] { return fs::exists(folder + ".ports"); }, kPatience))
      << node.log();
  const int faults = PortIn(folder + ".ports", "adminAddress");
  const int logs = PortIn(folder + ".ports", "logAddress");
  for (const char* host : {"node.example", "127.0.0.1"}) {
    EXPECT_THAT(Ask(faults, host, "/v1/state"), StartsWith("HTTP/1.1 200 ")) << host;
    EXPECT_THAT(Ask(logs, host, "/none"), StartsWith("HTTP/1.1 404 ")) << host;
  }
  EXPECT_THAT(Ask(faults, "evil.example", "/v1/state"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Ask(logs, "evil.example", "/none"), StartsWith("HTTP/1.1 403 "));
}

// The port that the program's log names after `words`, or 0 when it never does.
int PortInLog(ChildProgram& program, const std::string& words) {
  const auto find = [&] { return program.log().find(words); };
  program.WaitUntil([&] { return find() != std::string::npos; }, kPatience);
  if (find() == std::string::npos) return 0;
  const std::string log = program.log();
  const std::size_t at = find() + words.size();
  return std::atoi(log.c_str() + log.find("127.0.0.1:", at) + std::strlen("127.0.0.1:"));
}

// Whoever asks for any free port and for no file finds the port in the log.
TEST_F(ServersTest, EveryProgramSaysInItsLogOnWhichFreePortItServes) {
  const std::string kubeconfig = dir_.path() + "/kubeconfig";
  StartController({"--write-kubeconfig", kubeconfig});
  const std::string folder = dir_.path() + "/n";
  ChildProgram standby({Bin("controller"), "--data-dir", dir_.path() + "/standby", "--kubeconfig",
                        kubeconfig, "--admin-address", "127.0.0.1:0"},
                       dir_.path() + "/standby.log");
  ChildProgram node({Bin("sim-node"),
                     "--node-name",
                     "n",
                     "--instance-type",
                     "trn2u.48xlarge",
                     "--node-socket",
                     folder + "/s/n",
                     "--state-dir",
                     folder,
                     "--ultra-server.id",
                     "us-1",
                     "--link-address",
                     "127.0.0.1:0",
                     "--efa.address",
                     "127.0.0.1:0",
                     "--pod-runner.enabled",
                     "--pod-runner.kubeconfig",
                     kubeconfig,
                     "--pod-runner.registry-dir",
                     folder + "/r",
                     "--pod-runner.cdi-dir",
                     folder + "/c",
                     "--pod-runner.log-tls=false",
                     "--pod-runner.pod-user",
                     "same"},
                    dir_.path() + "/node.log");
  ChildProgram& own = controller_->program();
  for (const auto& [program, words, target] :
       std::vector<std::tuple<ChildProgram*, const char*, const char*>>{
           {&own, "serving the Kubernetes API at http://", "/api/v1/nodes"},
           {&own, "the admin API at http://", "/v1/nodes"},
           {&standby, "serving the admin API at http://", "/v1/nodes"},
           {&node, "serving the admin API at http://", "/v1/state"}}) {
    const int port = PortInLog(*program, words);
    ASSERT_NE(port, 0) << words << "\n" << program->log();
    EXPECT_THAT(Ask(port, "127.0.0.1", target), StartsWith("HTTP/1.1 200 ")) << words;
  }
  for (const char* words :
       {"serving the logs of pods at ", "listening for the UltraServer's other nodes at ",
        "listening for the nodes of other domains at "}) {
    EXPECT_NE(PortInLog(node, words), 0) << words << "\n" << node.log();
  }
}

TEST_F(ServersTest, EveryProgramSaysThatItsTokenWouldCrossTheNetworkInTheClear) {
  const std::string kubeconfig = dir_.path() + "/kubeconfig";
  std::ofstream(kubeconfig)
      << "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: "
         "\"http://tahoma.invalid:1\"}}]\nusers: [{name: u, user: {token: secret}}]\ncontexts: "
         "[{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n";
  const std::string token = dir_.path() + "/token";
  std::ofstream(token) << "secret\n";
  fs::permissions(token, fs::perms::owner_read | fs::perms::owner_write);
  const std::string folder = dir_.path() + "/p";
  fs::create_directories(folder);
  const std::string says = "the token for http://tahoma.invalid:1 is sent without TLS: ";
  int runs = 0;
  for (const Words& command : std::vector<Words>{
           {"controller", "--data-dir", folder + "/data", "--admin-address", "127.0.0.1:0",
            "--kubeconfig", kubeconfig},
           {"controller", "backup", "--admin-url", "http://tahoma.invalid:1", "--token-file", token,
            folder + "/backup"},
           {"dra-plugin", "--node-name", "a", "--node-socket", folder + "/n", "--kubeconfig",
            kubeconfig, "--plugin-dir", folder + "/plugins", "--registry-dir", folder + "/r",
            "--cdi-dir", folder + "/c"},
           {"sim-node", "--node-name", "a", "--node-socket", folder + "/s/n", "--state-dir",
            folder + "/state", "--pod-runner.enabled", "--pod-runner.kubeconfig", kubeconfig,
            "--pod-runner.registry-dir", folder + "/r", "--pod-runner.pod-user", "same"},
           {"kubectl-tahoma", "--kubeconfig", kubeconfig, "gangs"}}) {
    Words words = command;
    words[0] = Bin(command[0]);
    ChildProgram program(words, fmt::format("{}/log-{}", dir_.path(), ++runs));
    const auto said = [&] { return program.log().find(says) != std::string::npos; };
    EXPECT_TRUE(program.WaitUntil(said, kPatience) || said()) << command[0] << ":\n"
                                                              << program.log();
  }
}

}  // namespace
}  // namespace tahoma
