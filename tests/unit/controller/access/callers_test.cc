// The files that say who may call: read at the start, read again when they change, and kept as they
// were when the new ones are wrong.

#include "controller/access/callers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/status.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kHead = "apiVersion: tahoma.dev/v1alpha1\nkind: IdentityFile\nidentities:\n";

class CallersTest : public ::testing::Test {
 protected:
  void WriteIdentities(const std::string& entries, mode_t mode = 0600) {
    files_.identities = dir_.path() + "/identities.yaml";
    ASSERT_TRUE(WriteAtomically(files_.identities, kHead + entries, mode).ok());
  }
  void WriteToken(const std::string& token, mode_t mode = 0600) {
    files_.tokens = dir_.path() + "/token";
    ASSERT_TRUE(WriteAtomically(files_.tokens, token, mode).ok());
  }
  absl::Status Open() {
    auto callers = Callers::Open(files_, metrics_, [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_.push_back(line);
    });
    if (!callers.ok()) return callers.status();
    callers_ = *std::move(callers);
    return absl::OkStatus();
  }
  std::string NameOf(const std::string& token) {
    const auto user = callers_->access()->table()->Authenticate(token, std::nullopt);
    return user == nullptr ? "" : user->name;
  }

  testing::TempDir dir_;
  Callers::Files files_;
  rest::Metrics metrics_;
  std::mutex mutex_;
  std::vector<std::string> log_;
  std::unique_ptr<Callers> callers_;
};

TEST_F(CallersTest, WithoutFilesTheApiIsOpen) {
  ASSERT_EQ(Open(), absl::OkStatus());
  EXPECT_TRUE(callers_->open());
  files_.certificates = true;
  ASSERT_EQ(Open(), absl::OkStatus());
  EXPECT_FALSE(callers_->open()) << "certificates are asked for";
}

TEST_F(CallersTest, TheTokenFileIsTheAdministratorBesideTheIdentities) {
  WriteToken("short\n");
  WriteIdentities("- {name: vera, role: view, token: the-token-of-vera}\n");
  ASSERT_EQ(Open(), absl::OkStatus());
  EXPECT_EQ(NameOf("short"), "admin") << "as ever: its length is the user's choice";
  EXPECT_EQ(NameOf("the-token-of-vera"), "vera");
  EXPECT_EQ(NameOf("other"), "");
}

TEST_F(CallersTest, AChangedFileIsInForceAfterOneLook) {
  WriteIdentities("- {name: vera, role: view, token: the-token-of-vera}\n");
  ASSERT_EQ(Open(), absl::OkStatus());
  callers_->Poll();
  EXPECT_THAT(log_, IsEmpty());
  WriteIdentities("- {name: olga, role: view, token: the-token-of-olga}\n");
  callers_->Poll();
  EXPECT_EQ(NameOf("the-token-of-vera"), "");
  EXPECT_EQ(NameOf("the-token-of-olga"), "olga");
  EXPECT_THAT(log_, ElementsAre("the identities were read again and are in force"));
}

TEST_F(CallersTest, ABrokenNewFileChangesNothingAndIsToldOnce) {
  WriteIdentities("- {name: vera, role: view, token: the-token-of-vera}\n");
  ASSERT_EQ(Open(), absl::OkStatus());
  WriteIdentities("- {name: vera, role: root}\n");
  callers_->Poll();
  callers_->Poll();
  EXPECT_EQ(NameOf("the-token-of-vera"), "vera");
  EXPECT_THAT(log_, ElementsAre(HasSubstr("the identities stay as they were: ")));
  EXPECT_THAT(log_[0], HasSubstr("role is \"root\""));
  EXPECT_THAT(metrics_.Text(), HasSubstr("tahoma_identity_reload_failures_total 1"));
  EXPECT_THAT(metrics_.Text(), HasSubstr("tahoma_identities_stale 1"));
  std::filesystem::remove(files_.identities);
  callers_->Poll();
  EXPECT_EQ(NameOf("the-token-of-vera"), "vera");
  EXPECT_THAT(metrics_.Text(), HasSubstr("tahoma_identity_reload_failures_total 2"));
  WriteIdentities("- {name: vera, role: view, token: the-token-of-vera}\n");
  callers_->Poll();
  EXPECT_THAT(metrics_.Text(), HasSubstr("tahoma_identities_stale 0"));
}

TEST_F(CallersTest, AFileThatOthersMayReadIsRefusedAtTheStartAndLater) {
  WriteIdentities("- {name: vera, role: view, token: the-token-of-vera}\n", 0644);
  const absl::Status refused = Open();
  EXPECT_THAT(Message(refused), HasSubstr("identityFile: " + files_.identities));
  ASSERT_EQ(::chmod(files_.identities.c_str(), 0640), 0);
  ASSERT_EQ(Open(), absl::OkStatus()) << "a group of its own may";
  WriteIdentities("- {name: olga, role: view, token: the-token-of-olga}\n", 0644);
  callers_->Poll();
  EXPECT_EQ(NameOf("the-token-of-olga"), "");
}

TEST_F(CallersTest, AccessKeysAreReadAgainAndABrokenFileLeavesThemInForce) {
  const auto write = [&](const std::string& id, const std::string& account) {
    files_.access_keys = dir_.path() + "/keys.yaml";
    ASSERT_TRUE(WriteAtomically(
                    files_.access_keys,
                    "apiVersion: tahoma.dev/v1alpha1\nkind: AccessKeyFile\n"
                    "accessKeys:\n- {accessKeyId: " +
                        id + ", secretAccessKey: 0123456789abcdef, name: ana, account: " + account +
                        "}\n",
                    0600)
                    .ok());
  };
  ASSERT_EQ(Open(), absl::OkStatus());
  EXPECT_FALSE(callers_->access_keys()) << "without the file signatures are not verified";
  write("AKIAEXAMPLE000000001", "\"111122223333\"");
  ASSERT_EQ(Open(), absl::OkStatus());
  const CurrentAccessKeys keys = callers_->access_keys();
  EXPECT_NE(keys()->Find("AKIAEXAMPLE000000001"), nullptr);
  write("AKIAEXAMPLE000000002", "\"111122223333\"");
  callers_->Poll();
  EXPECT_EQ(keys()->Find("AKIAEXAMPLE000000001"), nullptr);
  EXPECT_NE(keys()->Find("AKIAEXAMPLE000000002"), nullptr);
  write("AKIAEXAMPLE000000003", "\"1\"");
  callers_->Poll();
  EXPECT_NE(keys()->Find("AKIAEXAMPLE000000002"), nullptr);
  EXPECT_THAT(log_.back(), HasSubstr("stay as they were: accessKeyFile: "));
  EXPECT_THAT(Message(Open()), HasSubstr("accessKeyFile: "));
}

TEST_F(CallersTest, AMissingFileAndAContradictionAreToldAtTheStart) {
  files_.identities = dir_.path() + "/none";
  EXPECT_THAT(Message(Open()), HasSubstr("identityFile: " + files_.identities));
  WriteIdentities("- {name: admin, role: view, token: the-token-of-admin}\n");
  WriteToken("t");
  EXPECT_THAT(Message(Open()), HasSubstr("an entry above has this name with another role"));
  WriteToken(" \n");
  EXPECT_THAT(Message(Open()), HasSubstr("tokenFile: "));
}

TEST_F(CallersTest, TheThreadLooksByItself) {
  WriteIdentities("- {name: vera, role: view, token: the-token-of-vera}\n");
  ASSERT_EQ(Open(), absl::OkStatus());
  callers_->Start();
  WriteIdentities("- {name: olga, role: view, token: the-token-of-olga}\n");
  const SystemClock clock;
  const MonotonicTime end = clock.MonotonicNow() + std::chrono::seconds(30);
  while (NameOf("the-token-of-olga").empty() && clock.MonotonicNow() < end) {
  }
  EXPECT_EQ(NameOf("the-token-of-olga"), "olga");
}

TEST_F(CallersTest, TheAuditGoesToTheLogOrToItsFile) {
  ASSERT_EQ(Open(), absl::OkStatus());
  callers_->audit().append("{}");
  EXPECT_THAT(log_, ElementsAre("audit {}"));
  files_.audit = dir_.path() + "/audit.log";
  files_.audit_required = true;
  ASSERT_EQ(Open(), absl::OkStatus());
  const AuditSink sink = callers_->audit();
  sink.append("{}");
  EXPECT_TRUE(sink.writable());
  EXPECT_EQ(ReadFile(files_.audit).value_or("?"), "{}\n");
  files_.audit = dir_.path() + "/none/audit.log";
  EXPECT_THAT(Message(Open()), HasSubstr("auditFile: "));
}

}  // namespace
}  // namespace tahoma::controller
