// Tests the options of the controller, and which combinations make no sense.

#include "controller/app/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "lib/config/parse.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status Parse(Options& options, const std::vector<std::string>& arguments) {
  return config::ParseArguments(arguments, DeclareOptions(options)).status();
}

TEST(OptionsTest, DefaultsAreUsableAsTheyAre) {
  Options options;
  ASSERT_TRUE(Parse(options, {}).ok());
  EXPECT_TRUE(CheckOptions(options).ok());
  EXPECT_FALSE(options.standalone);
  EXPECT_EQ(options.listen_address, "127.0.0.1:8001");
  EXPECT_EQ(options.admin_address, "127.0.0.1:8002");
}

TEST(OptionsTest, ATimeScaleIsForStandalone) {
  Options options;
  ASSERT_TRUE(Parse(options, {"--standalone", "--time-scale", "1440"}).ok());
  EXPECT_EQ(options.time_scale, 1440);
  EXPECT_TRUE(CheckOptions(options).ok());
  options.standalone = false;
  EXPECT_THAT(Message(CheckOptions(options)), HasSubstr("timeScale is for standalone"));
  for (const char* wrong : {"0", "-1", "100001", "1.5", "fast"}) {
    EXPECT_FALSE(Parse(options, {"--time-scale", wrong}).ok()) << wrong;
  }
}

TEST(OptionsTest, EveryOptionIsAFlagAndAKeyOfTheSameName) {
  Options flags;
  ASSERT_TRUE(Parse(flags, {"--standalone",
                            "--data-dir",
                            "d",
                            "--listen-address",
                            "l",
                            "--admin-address",
                            "a",
                            "--kubeconfig",
                            "k",
                            "--crd-dir",
                            "c",
                            "--write-kubeconfig",
                            "w",
                            "--port-file",
                            "p",
                            "--token-file",
                            "t",
                            "--tls-cert-file",
                            "tc",
                            "--tls-key-file",
                            "tk",
                            "--client-ca-file",
                            "ca",
                            "--allowed-hosts",
                            "a.example,10.0.0.5",
                            "--watch-history-bytes",
                            "8M",
                            "--scheduler-names",
                            "s1,s2"})
                  .ok());
  Options file;
  const absl::Status read = config::ParseFile(
      "apiVersion: tahoma.dev/v1alpha1\nkind: ControllerConfig\nstandalone: true\ndataDir: d\n"
      "listenAddress: l\nadminAddress: a\nkubeconfig: k\ncrdDir: c\nwriteKubeconfig: w\n"
      "portFile: p\ntokenFile: t\ntlsCertFile: tc\ntlsKeyFile: tk\nclientCaFile: ca\n"
      "allowedHosts: [a.example, 10.0.0.5]\nwatchHistoryBytes: 8Mi\n"
      "schedulerNames: [s1, s2]\n",
      "file", DeclareOptions(file));
  ASSERT_TRUE(read.ok()) << read;
  for (const auto& member :
       {&Options::data_dir, &Options::listen_address, &Options::admin_address, &Options::kubeconfig,
        &Options::crd_dir, &Options::write_kubeconfig, &Options::port_file, &Options::token_file,
        &Options::tls_cert_file, &Options::tls_key_file, &Options::client_ca_file}) {
    EXPECT_EQ(flags.*member, file.*member);
    EXPECT_FALSE((flags.*member).empty());
  }
  EXPECT_TRUE(flags.standalone && file.standalone);
  EXPECT_THAT(flags.allowed_hosts, ElementsAre("a.example", "10.0.0.5"));
  EXPECT_EQ(flags.allowed_hosts, file.allowed_hosts);
  EXPECT_EQ(flags.watch_history_bytes, std::size_t{8} << 20);
  EXPECT_EQ(flags.watch_history_bytes, file.watch_history_bytes);
  EXPECT_THAT(flags.scheduler_names, ElementsAre("s1", "s2"));
  EXPECT_EQ(flags.scheduler_names, file.scheduler_names);
}

struct Combination {
  std::function<void(Options&)> set;
  std::string says;  // empty: it is fine
};

TEST(OptionsTest, CombinationsThatMakeNoSenseAreRefusedWithTheReason) {
  const std::vector<Combination> combinations = {
      {[](Options& o) { o.data_dir.clear(); }, "dataDir is empty; name a folder"},
      {[](Options& o) { o.tls_cert_file = "c"; },
       "tlsCertFile and tlsKeyFile must be given together"},
      {[](Options& o) { o.tls_key_file = "k"; },
       "tlsCertFile and tlsKeyFile must be given together"},
      {[](Options& o) { o.client_ca_file = "ca"; },
       "clientCaFile needs tlsCertFile and tlsKeyFile"},
      {[](Options& o) { o.audit_required = true; }, "auditRequired needs auditFile"},
      {[](Options& o) { o.tls_cert_file = o.tls_key_file = o.client_ca_file = "x"; }, ""},
      {[](Options& o) {
         o.allowed_hosts = {"tahoma.example", "10.0.0.5"};
       },
       ""},
      {[](Options& o) { o.allowed_hosts = {"tahoma.example:8001"}; },
       "allowedHosts: \"tahoma.example:8001\" is not a host; expected a name or an address without "
       "port, for example tahoma.example.com, 10.0.0.5 or fd00::1"},
      {[](Options& o) {
         o.standalone = true;
         o.listen_address = o.admin_address;
       },
       "listenAddress and adminAddress are both 127.0.0.1:8002"},
      {[](Options& o) { o.listen_address = o.admin_address; }, ""},  // a cluster: not listened on
      {[](Options& o) {
         o.standalone = true;
         o.listen_address = o.admin_address = "127.0.0.1:0";
       },
       ""},
      {[](Options& o) { o.admin_asks_cluster = true; }, ""},
      {[](Options& o) { o.standalone = o.admin_asks_cluster = true; },
       "adminAsksCluster is for a cluster: standalone has an identityFile "
       "(docs/formats/identities.md)"},
      {[](Options& o) {
         o.standalone = true;
         o.pod_name = "p";
       },
       "podName is for a cluster: standalone has no stand-by"},
      {[](Options& o) { o.write_kubeconfig = "w"; },
       "writeKubeconfig is for standalone: a cluster has its own kubeconfig"},
      {[](Options& o) {
         o.standalone = true;
         o.write_kubeconfig = "w";
       },
       ""}};
  for (std::size_t i = 0; i < combinations.size(); ++i) {
    SCOPED_TRACE(i);
    Options options;
    combinations[i].set(options);
    const absl::Status checked = CheckOptions(options);
    EXPECT_EQ(Message(checked), combinations[i].says);
    EXPECT_EQ(checked.ok(), combinations[i].says.empty());
  }
}

TEST(SchedulerNamesTest, StandingAloneItTakesOrdinaryPodsToo) {
  Options options;
  EXPECT_THAT(SchedulerNames(options), ElementsAre("tahoma"));
  options.standalone = true;
  EXPECT_THAT(SchedulerNames(options), ElementsAre("tahoma", "default-scheduler"));
  options.scheduler_names = {"mine"};
  EXPECT_THAT(SchedulerNames(options), ElementsAre("mine"));
}

TEST(SchedulerNamesTest, WrongNamesAreRefusedAndNamed) {
  const auto refusal = [](std::vector<std::string> names) {
    Options options;
    options.scheduler_names = std::move(names);
    return std::string(Message(CheckOptions(options)));
  };
  EXPECT_EQ(refusal({"tahoma", "default-scheduler"}), "");
  EXPECT_THAT(refusal({"tahoma", "My Scheduler"}),
              HasSubstr("schedulerNames: \"My Scheduler\" is not the name of a scheduler: "));
  EXPECT_THAT(refusal({""}), HasSubstr("schedulerNames: \"\" is not the name of a scheduler: "));
  EXPECT_EQ(refusal({"a", "b", "a"}), "schedulerNames: \"a\" is named twice");
}

}  // namespace
}  // namespace tahoma::controller
