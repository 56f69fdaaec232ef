// The kubelet's log endpoint over TLS, as kube-apiserver asks it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/status.h"
#include "lib/kube/http_transport.h"
#include "sim-node/podrunner/container_log.h"
#include "sim-node/podrunner/log_folder.h"
#include "sim-node/podrunner/serving_certificate.h"
#include "tests/support/temp_dir.h"

namespace tahoma::sim {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const PodRef kPod{.name_space = "default", .name = "web", .uid = "uid-web"};

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

class LogRoutesTest : public ::testing::Test {
 protected:
  LogRoutesTest() : logs_(dir_.path()), clock_(*ParseTime("2026-11-21T10:00:00Z")) {
    const auto made = MakeServingCertificate(dir_.path(), "node-0", SystemClock().WallNow());
    EXPECT_TRUE(made.ok()) << made.status();
    certificate_ = *made;
    server_ = std::make_unique<rest::Server>(
        rest::ServerOptions{
            .tls = {.cert_file = certificate_.cert_file, .key_file = certificate_.key_file}},
        metrics_);
    InstallLogRoutes(*server_, logs_, clock_);
    EXPECT_EQ(server_->Start(), absl::OkStatus());
    // kube-apiserver trusts no certificate of a kubelet in particular; this client trusts just it.
    client_ = *kube::HttpTransport::Create(
        {.server = server_->url(), .ca_pem = ReadAll(certificate_.cert_file)});
  }

  // An attempt of container "main" that has printed these lines, a second apart, and runs on.
  std::unique_ptr<ContainerLog> Attempt(int attempt, const std::vector<std::string>& lines) {
    const auto file = logs_.Begin(kPod, "main", attempt);
    EXPECT_TRUE(file.ok()) << file.status();
    file_ = *file;
    auto log = std::make_unique<ContainerLog>(*file, ContainerLog::Limits{});
    for (std::size_t i = 0; i < lines.size(); ++i) {
      log->Append(LogStream::kStdout, lines[i] + "\n",
                  clock_.WallNow() - seconds(lines.size() - 1 - i));
    }
    return log;
  }
  void End(ContainerLog& log) {
    log.Close(clock_.WallNow());
    logs_.End(file_);
  }
  kube::Response Get(const std::string& query, const std::string& path = "default/web/main") {
    auto answer = client_->Send({.target = "/containerLogs/" + path + query});
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : kube::Response{};
  }

  testing::TempDir dir_;
  LogFolder logs_;
  ManualClock clock_;
  ServingCertificate certificate_;
  rest::Metrics metrics_;
  std::unique_ptr<rest::Server> server_;
  std::unique_ptr<kube::HttpTransport> client_;
  std::filesystem::path file_;
};

TEST_F(LogRoutesTest, TheWholeLogIsPlainText) {
  End(*Attempt(0, {"one", "two", "three"}));
  const kube::Response answer = Get("");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(answer.body, "one\ntwo\nthree\n");
}

TEST_F(LogRoutesTest, AGrowingLogIsReadUpToItsPresentEnd) {
  const auto log = Attempt(0, {"one"});
  EXPECT_EQ(Get("").body, "one\n") << "without follow nobody waits";
}

TEST_F(LogRoutesTest, TheKubeletsOptionsCutIt) {
  End(*Attempt(0, {"one", "two", "three"}));
  EXPECT_EQ(Get("?tailLines=2").body, "two\nthree\n");
  EXPECT_EQ(Get("?tailLines=0").body, "");
  EXPECT_EQ(Get("?limitBytes=5").body, "one\nt");
  EXPECT_EQ(Get("?sinceSeconds=1").body, "two\nthree\n");
  EXPECT_EQ(Get("?sinceTime=2026-11-21T10:00:00Z").body, "three\n");
  EXPECT_EQ(Get("?sinceSeconds=9223372036854775807").body, "one\ntwo\nthree\n");
  EXPECT_EQ(Get("?timestamps=true&tailLines=1").body, "2026-11-21T10:00:00.000000000Z three\n");
}

TEST_F(LogRoutesTest, TheLastLinesOfALargeLogAreFoundToo) {
  std::vector<std::string> lines;
  for (int i = 0; i < 20'000; ++i) lines.push_back(fmt::format("line {} of many that are long", i));
  End(*Attempt(0, lines));
  ASSERT_GT(std::filesystem::file_size(file_), 1'000'000U);
  EXPECT_EQ(Get("?tailLines=1").body, "line 19999 of many that are long\n");
  EXPECT_EQ(Get("?sinceSeconds=0").body, "line 19999 of many that are long\n");
}

TEST_F(LogRoutesTest, ALongLineHasOneTimestamp) {
  const std::string line(kMaxLogPiece + 10, 'x');
  End(*Attempt(0, {line, "next"}));
  EXPECT_EQ(Get("?timestamps=1").body,
            "2026-11-21T09:59:59.000000000Z " + line + "\n2026-11-21T10:00:00.000000000Z next\n");
}

TEST_F(LogRoutesTest, OptionsThatAreNoneAreRefusedByName) {
  End(*Attempt(0, {"one"}));
  for (const std::string query : {"?tailLines=x", "?tailLines=-1", "?limitBytes=1e3",
                                  "?sinceSeconds=", "?sinceTime=yesterday"}) {
    const kube::Response answer = Get(query);
    EXPECT_EQ(answer.status, 400) << query;
  }
  EXPECT_THAT(Get("?tailLines=x").body, HasSubstr("tailLines is \\\"x\\\"; expected a number"));
}

TEST_F(LogRoutesTest, WhatHasNoLogIsSaidInPlainText) {
  const kube::Response unknown = Get("");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.body, "pod default/web is not on this node\n");
  logs_.AddPod(kPod);
  EXPECT_EQ(Get("").body,
            "container \"main\" in pod \"web\" is waiting to start or does not exist\n");
  End(*Attempt(0, {"one"}));
  const kube::Response previous = Get("?previous=true");
  EXPECT_EQ(previous.status, 404);
  EXPECT_EQ(previous.body, "previous terminated container \"main\" in pod \"web\" not found\n");
  EXPECT_EQ(Get("", "default/web/..").status, 400) << "no way out of the folder";
  logs_.RemovePod(kPod);
  EXPECT_EQ(Get("").status, 404);
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(LogRoutesTest, ThePreviousAttemptIsKeptAndThoseBeforeAreNot) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    End(*Attempt(attempt, {fmt::format("attempt {}", attempt)}));
  }
  EXPECT_EQ(Get("").body, "attempt 2\n");
  EXPECT_EQ(Get("?previous=true").body, "attempt 1\n");
  EXPECT_FALSE(std::filesystem::exists(file_.parent_path() / "0.log"));
}

TEST_F(LogRoutesTest, ThePreviousLogOfAWaitingContainerIsItsLastAttempt) {
  End(*Attempt(0, {"attempt 0"}));
  logs_.AddPod(kPod, {"main"});
  EXPECT_EQ(Get("").body, "attempt 0\n");
  EXPECT_EQ(Get("?previous=true").body, "attempt 0\n");
  const auto log = Attempt(1, {"attempt 1"});
  EXPECT_EQ(Get("?previous=true").body, "attempt 0\n");
  End(*log);
  logs_.AddPod(kPod, {"main"});
  EXPECT_EQ(Get("?previous=true").body, "attempt 1\n");
  logs_.AddPod(kPod);
  EXPECT_EQ(Get("?previous=true").body, "attempt 0\n");
}

TEST_F(LogRoutesTest, AFollowerSeesEveryLineAndEndsWithTheContainer) {
  const auto log = Attempt(0, {"one"});
  std::vector<std::string> seen;
  const auto answer = client_->Stream(
      {.target = "/containerLogs/default/web/main?follow=true"},
      [&](std::string_view line) {
        seen.emplace_back(line);
        if (seen.size() == 1) log->Append(LogStream::kStderr, "two\n", clock_.WallNow());
        if (seen.size() == 2) {
          log->Append(LogStream::kStdout, "last", clock_.WallNow());
          End(*log);
        }
        return true;
      },
      seconds(30));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "two", "last"}));
}

TEST_F(LogRoutesTest, OnlyReadingIsPossible) {
  const auto answer =
      client_->Send({.method = "DELETE", .target = "/containerLogs/default/web/main"});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 405);
}

// ---- The certificate ---------------------------------------------------------------------------

TEST_F(LogRoutesTest, ClientsThatVerifyTrustOnlyTheGivenCertificate) {
  const auto other = MakeServingCertificate(dir_.path(), "node-1", SystemClock().WallNow());
  ASSERT_TRUE(other.ok());
  const auto stranger =
      *kube::HttpTransport::Create({.server = server_->url(), .ca_pem = ReadAll(other->cert_file)});
  EXPECT_FALSE(stranger->Send({.target = "/healthz"}).ok());
  const auto careless =
      *kube::HttpTransport::Create({.server = server_->url(), .insecure_skip_tls_verify = true});
  EXPECT_TRUE(careless->Send({.target = "/healthz"}).ok());
  const auto plain =
      *kube::HttpTransport::Create({.server = fmt::format("http://127.0.0.1:{}", server_->port())});
  const auto refused = plain->Send({.target = "/healthz"});
  EXPECT_TRUE(!refused.ok() || refused->status >= 400) << "TLS only";
}

TEST_F(LogRoutesTest, TheKeyIsItsOwnersAloneAndBadPlacesAreNamed) {
  struct stat made = {};
  ASSERT_EQ(::stat(certificate_.key_file.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0600U);
  EXPECT_THAT(ReadAll(certificate_.cert_file), StartsWith("-----BEGIN CERTIFICATE-----"));
  const auto nowhere = MakeServingCertificate(dir_.path() + "/none", "node-0", WallTime{});
  EXPECT_THAT(Message(nowhere.status()), HasSubstr(dir_.path() + "/none"));
  const auto unnamed = MakeServingCertificate(dir_.path(), "bad\x01,,name", WallTime{});
  EXPECT_FALSE(unnamed.ok());
}

}  // namespace
}  // namespace tahoma::sim
