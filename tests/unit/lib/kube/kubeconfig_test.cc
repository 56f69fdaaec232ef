// Kubeconfig files: several files, data in base64, relative paths, and refusals.

#include "lib/kube/kubeconfig.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::kube {
namespace {

namespace fs = std::filesystem;

class KubeconfigTest : public ::testing::Test {
 protected:
  KubeconfigTest() {
    std::string pattern = (fs::temp_directory_path() / "kubeconfig-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~KubeconfigTest() override { fs::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  std::string Error(const std::string& text) const {
    return std::string(Message(LoadKubeconfig(Write("bad", text)).status()));
  }
  std::string folder_;
};

constexpr const char* kConfig = R"(
apiVersion: v1
kind: Config
current-context: dev
contexts:
- {name: dev, context: {cluster: c1, user: u1, namespace: training}}
- {name: prod, context: {cluster: c2, user: u2}}
- {name: plain, context: {cluster: c3}}
clusters:
- {name: c1, cluster: {server: "https://a:1", certificate-authority-data: Y2E=}}
- {name: c2, cluster: {server: "https://b:2", certificate-authority: ca.pem, tls-server-name: api}}
- {name: c3, cluster: {server: "http://c:3", insecure-skip-tls-verify: true}}
users:
- {name: u1, user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}}
- {name: u2, user: {token: t, tokenFile: token}}
)";

TEST_F(KubeconfigTest, TheCurrentContextIsTaken) {
  const auto access = LoadKubeconfig(Write("config", kConfig));
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://a:1");
  EXPECT_EQ(access->ca_pem, "ca");
  EXPECT_EQ(access->client_cert_pem, "cert");
  EXPECT_EQ(access->client_key_pem, "key");
  EXPECT_EQ(access->default_namespace, "training");
  EXPECT_FALSE(access->insecure_skip_tls_verify);
}

TEST_F(KubeconfigTest, AnotherContextCanBeNamedAndPathsAreRelativeToTheFile) {
  Write("ca.pem", "the ca");
  const auto access = LoadKubeconfig(Write("config", kConfig), "prod");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->ca_pem, "the ca");
  EXPECT_EQ(access->tls_server_name, "api");
  EXPECT_EQ(access->token, "t");
  EXPECT_EQ(access->token_file, folder_ + "/token");
  EXPECT_EQ(access->default_namespace, "default");
  EXPECT_TRUE(LoadKubeconfig(folder_ + "/config", "plain")->insecure_skip_tls_verify);
}

TEST_F(KubeconfigTest, OfSeveralFilesTheFirstCounts) {
  const std::string first = Write("first", "contexts:\n- {name: dev, context: {cluster: c3}}\n");
  const auto access =
      LoadKubeconfig(first + ":" + folder_ + "/missing::" + Write("config", kConfig));
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "http://c:3");
  EXPECT_TRUE(absl::IsNotFound(LoadKubeconfig("/nonexistent/a:/nonexistent/b").status()));
  EXPECT_TRUE(absl::IsNotFound(LoadKubeconfig("/nonexistent/a").status()));
  EXPECT_TRUE(absl::IsNotFound(LoadKubeconfig("").status()));
  EXPECT_FALSE(LoadKubeconfig(folder_).ok());
}

TEST_F(KubeconfigTest, ProgramsForCredentialsAreRefusedByName) {
  const std::string error = Error(
      "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
      "clusters: [{name: c, cluster: {server: 'https://x'}}]\n"
      "users: [{name: u, user: {exec: {command: aws}}}]\n");
  EXPECT_NE(error.find("the user \"u\" gets its credentials from a program (exec)"),
            std::string::npos)
      << error;
}

TEST_F(KubeconfigTest, WhatIsMissingOrMalformedIsNamed) {
  EXPECT_NE(Error("").find("is not a kubeconfig"), std::string::npos);
  EXPECT_NE(Error("a: [").find("line"), std::string::npos);
  EXPECT_NE(Error("kind: Config\n").find("no current-context"), std::string::npos);
  EXPECT_NE(Error("current-context: x\n").find("there is no context \"x\""), std::string::npos);
  EXPECT_NE(Error("current-context: x\ncontexts: [{name: x}]\n").find("is empty"),
            std::string::npos);
  EXPECT_NE(Error("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n")
                .find("there is no cluster \"c\""),
            std::string::npos);
  const std::string head =
      "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n";
  EXPECT_NE(Error(head + "clusters: [{name: c, cluster: {a: 1}}]\n").find("has no server"),
            std::string::npos);
  EXPECT_NE(Error(head + "clusters: [{name: c, cluster: {server: s, "
                         "certificate-authority-data: '!'}}]\n")
                .find("is not base64"),
            std::string::npos);
  EXPECT_NE(Error(head + "clusters: [{name: c, cluster: {server: s, certificate-authority-data: "
                         "Y2E=, insecure-skip-tls-verify: true}}]\n")
                .find("only one"),
            std::string::npos);
  EXPECT_NE(
      Error(head + "clusters: [{name: c, cluster: {server: s}}]\n").find("there is no user \"u\""),
      std::string::npos);
  EXPECT_NE(Error(head + "clusters: [{name: c, cluster: {server: s}}]\n"
                         "users: [{name: u, user: {client-certificate-data: YQ==}}]\n")
                .find("the user \"u\" has a client-certificate without a client-key"),
            std::string::npos);
}

// Returns a file with a context, a cluster and a user, with the given fields.
std::string OneOfEach(const std::string& user, const std::string& cluster = "") {
  return "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
         "clusters: [{name: c, cluster: {server: 'https://x'" +
         cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
}

TEST_F(KubeconfigTest, UnsupportedKeysOfUserOrClusterAreRefusedNotIgnored) {
  struct Case {
    const char* user;
    const char* cluster;
    const char* reason;
  };
  for (const Case& c :
       {Case{"auth-provider: {name: gcp}", "", "from a program (auth-provider)"},
        Case{"username: a, password: b", "", "has a password"},
        Case{"token: t", ", proxy-url: 'http://p:1'", "is behind a proxy (proxy-url)"}}) {
    const auto access = LoadKubeconfig(Write("config", OneOfEach(c.user, c.cluster)));
    EXPECT_TRUE(absl::IsUnimplemented(access.status())) << c.user << access.status();
    EXPECT_NE(Message(access.status()).find(c.reason), std::string::npos) << access.status();
    EXPECT_TRUE(Message(access.status()).starts_with(folder_ + "/config: ")) << access.status();
  }
}

TEST_F(KubeconfigTest, AUserMayActAsAnother) {
  const auto access =
      LoadKubeconfig(Write("config", OneOfEach("token: t, as: jane, as-uid: u, as-groups: [a, b], "
                                               "as-user-extra: {example.com/x: [v, w]}",
                                               "")));
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->impersonate_user, "jane");
  EXPECT_EQ(access->impersonate_uid, "u");
  EXPECT_EQ(access->impersonate_groups, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(access->impersonate_extra.size(), 1U);
  EXPECT_EQ(access->impersonate_extra[0].first, "example.com/x");
  EXPECT_EQ(access->impersonate_extra[0].second, (std::vector<std::string>{"v", "w"}));
}

// The program of these tests prints `printed_`.
class ExecCredentialTest : public KubeconfigTest {
 protected:
  absl::StatusOr<ServerAccess> Load(const std::string& exec, bool terminal = false) {
    return LoadKubeconfig(
        Write("config", OneOfEach("exec: {" + exec + "}", ", tls-server-name: own.example")), "",
        {.run = [this](const CredentialCall& call) -> absl::StatusOr<std::string> {
           call_ = call;
           return printed_;
         },
         .terminal = terminal});
  }
  std::string Why(const std::string& exec) { return std::string(Message(Load(exec).status())); }

  const std::string api_ = "apiVersion: client.authentication.k8s.io/v1";
  std::string printed_ = R"({"apiVersion": "client.authentication.k8s.io/v1",
    "kind": "ExecCredential", "status": {"token": "from-the-program"}})";
  CredentialCall call_;
};

TEST_F(ExecCredentialTest, TheProgramIsAskedAndItsTokenUsed) {
  const auto access = Load(api_ +
                           ", command: aws, args: [eks, get-token], provideClusterInfo: true"
                           ", env: [{name: AWS_PROFILE, value: p}]");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->token, "from-the-program");
  EXPECT_EQ(call_.command, "aws");
  EXPECT_EQ(call_.args, (std::vector<std::string>{"eks", "get-token"}));
  ASSERT_EQ(call_.environment.size(), 2U);
  EXPECT_EQ(call_.environment[0], std::pair(std::string("AWS_PROFILE"), std::string("p")));
  EXPECT_EQ(call_.environment[1].first, "KUBERNETES_EXEC_INFO");
  const Json info = ParseJson(call_.environment[1].second);
  EXPECT_EQ(info.at("kind"), "ExecCredential");
  EXPECT_EQ(info.at("apiVersion"), "client.authentication.k8s.io/v1");
  EXPECT_EQ(info.at("spec").at("interactive"), false);
  EXPECT_EQ(info.at("spec").at("cluster").at("tls-server-name"), "own.example");
}

TEST_F(ExecCredentialTest, ACommandWithASlashIsBesideTheKubeconfig) {
  ASSERT_TRUE(Load(api_ + ", command: bin/login", true).ok());
  EXPECT_EQ(call_.command, folder_ + "/bin/login");
  EXPECT_TRUE(call_.interactive);
  ASSERT_TRUE(Load(api_ + ", command: /bin/login, interactiveMode: Never", true).ok());
  EXPECT_EQ(call_.command, "/bin/login");
  EXPECT_FALSE(call_.interactive);
}

TEST_F(ExecCredentialTest, ACertificateIsUsedToo) {
  printed_ = R"({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
    "status": {"clientCertificateData": "c", "clientKeyData": "k"}})";
  const auto access = Load(api_ + ", command: x");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->client_cert_pem, "c");
  EXPECT_EQ(access->client_key_pem, "k");
}

TEST_F(ExecCredentialTest, WhatIsWrongIsSaid) {
  const std::string good = api_ + ", command: x";
  EXPECT_NE(Why(api_).find("exec names no command"), std::string::npos) << Why(api_);
  EXPECT_NE(Why("command: x").find("apiVersion of the program x is \"\""), std::string::npos);
  EXPECT_NE(Why(good + ", interactiveMode: Always").find("needs a terminal"), std::string::npos);
  EXPECT_NE(Why(good + ", interactiveMode: Maybe").find("is \"Maybe\""), std::string::npos);
  const std::string head =
      R"({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential")";
  for (const auto& [printed, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "no ExecCredential"},
           {"[]", "no ExecCredential"},
           {R"({"kind": "ExecCredential"})", "plugin returned version "},
           {head + "}", "neither a token nor"},
           {head + R"(, "status": 1})", "neither a token nor"},
           {head + R"(, "status": {"token": 1}})", "neither a token nor"},
           {head + R"(, "status": {"clientKeyData": "k"}})", "without a certificate"}}) {
    printed_ = printed;
    EXPECT_NE(Why(good).find(why), std::string::npos) << printed << ": " << Why(good);
    EXPECT_TRUE(Why(good).starts_with(folder_ + "/config: the user \"u\": ")) << Why(good);
  }
}

TEST_F(KubeconfigTest, EmptyFieldsAreNotThere) {
  const auto access = LoadKubeconfig(
      Write("config", OneOfEach("token: t, exec: null, auth-provider: ~, username: '', as: '', "
                                "as-groups: [], client-certificate: '', tokenFile: ''",
                                ", proxy-url: '', certificate-authority-data: ''")));
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->token, "t");
  EXPECT_EQ(access->token_file, "");
}

TEST_F(KubeconfigTest, AContextWithoutAClusterIsNamed) {
  EXPECT_NE(Error("current-context: x\ncontexts: [{name: x, context: {user: u}}]\n")
                .find("the context \"x\" names no cluster"),
            std::string::npos);
}

TEST_F(KubeconfigTest, DataWinsOverAFileAndMayBeFolded) {
  const auto access = LoadKubeconfig(
      Write("config", OneOfEach("client-certificate-data: Y2VydA==, client-certificate: none.pem, "
                                "client-key: key.pem",
                                ", certificate-authority: none, "
                                "certificate-authority-data: \"dGhl\\n  IGNh\"")));
  EXPECT_TRUE(absl::IsNotFound(access.status())) << access.status();
  EXPECT_NE(Message(access.status()).find(folder_ + "/key.pem"), std::string::npos);
  Write("key.pem", "key");
  const auto again = LoadKubeconfig(folder_ + "/config");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->client_cert_pem, "cert");
  EXPECT_EQ(again->client_key_pem, "key");
  EXPECT_EQ(again->ca_pem, "the ca");
}

TEST_F(KubeconfigTest, PartsMayStandInDifferentFilesEachWithItsOwnFolder) {
  fs::create_directory(folder_ + "/sub");
  Write("sub/ca.pem", "sub ca");
  const std::string clusters = Write(
      "sub/clusters",
      "clusters: [{name: c, cluster: {server: 'https://x', certificate-authority: ca.pem}}]\n");
  const std::string users =
      Write("users", "users: [{name: u, user: {tokenFile: sub/../token}}]\ncurrent-context: ''\n");
  const std::string contexts = Write(
      "contexts", "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n");
  const auto access = LoadKubeconfig(users + ":" + contexts + ":" + clusters);
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->ca_pem, "sub ca");
  EXPECT_EQ(access->token_file, folder_ + "/sub/../token");
}

TEST_F(KubeconfigTest, ListsOfAnotherShapeAreAsGoodAsMissing) {
  for (const char* odd : {"contexts: {a: 1}", "contexts: 7", "contexts: [1, null, {name: 5}]"}) {
    EXPECT_NE(Error("current-context: x\n" + std::string(odd) + "\n").find("no context \"x\""),
              std::string::npos)
        << odd;
  }
}

TEST_F(KubeconfigTest, TheNamespaceOfAServiceAccountIsReadWithoutItsLineEnd) {
  Write("ca.crt", "ca");
  Write("token", "t\n");
  Write("namespace", " tahoma\n");
  EXPECT_EQ(InClusterAccess("a", "443", folder_)->default_namespace, "tahoma");
  Write("namespace", "\n");
  EXPECT_EQ(InClusterAccess("a", "443", folder_)->default_namespace, "default");
}

TEST_F(KubeconfigTest, InsideAClusterTheServiceAccountIsUsed) {
  Write("ca.crt", "ca");
  Write("token", "t");
  Write("namespace", "tahoma");
  const auto access = InClusterAccess("10.96.0.1", "443", folder_);
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://10.96.0.1:443");
  EXPECT_EQ(access->ca_pem, "ca");
  EXPECT_EQ(access->token_file, folder_ + "/token");
  EXPECT_EQ(access->default_namespace, "tahoma");
  EXPECT_EQ(InClusterAccess("fd00::1", "443", folder_)->server, "https://[fd00::1]:443");
  EXPECT_TRUE(absl::IsFailedPrecondition(InClusterAccess("", "443", folder_).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(InClusterAccess("a", "443", "/nonexistent").status()));
}

TEST_F(KubeconfigTest, WithoutAFileTheEnvironmentSaysWhereTheClusterIs) {
  std::vector<std::string> asked;
  const auto environment = [&](const char* name) {
    asked.emplace_back(name);
    return std::string();
  };
  EXPECT_TRUE(absl::IsNotFound(FindAccess(folder_ + "/missing", environment).status()));
  EXPECT_TRUE(asked.empty());
  EXPECT_TRUE(absl::IsFailedPrecondition(FindAccess("", environment).status()));
  EXPECT_EQ(asked.size(), 2U);
}

}  // namespace
}  // namespace tahoma::kube
