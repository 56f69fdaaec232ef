// Reading a backup over the admin API: who may, and the line in the audit that each call leaves.

#include "controller/backup/backup_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/access/identity_file.h"
#include "controller/admin/admin_access.h"
#include "controller/admin/route_table.h"
#include "controller/backup/backup.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/http_transport.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller {
namespace {

using json = Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class BackupRouteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = Store::Open({.dir = dir_.path() + "/data", .single_threaded = true});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    WriteBatch batch;
    batch.Put(Keyspace::kApi, "secret", "of great value");
    ASSERT_TRUE(store_->Commit(std::move(batch)).ok());
  }

  void Serve(const std::vector<IdentityEntry>& identities) {
    auto table = AccessTable::Make(identities, false);
    TAHOMA_CHECK_OK(table.status());
    access_.emplace(std::make_shared<const AccessControl>(*std::move(table)),
                    AuditSink{.append =
                                  [this](const std::string& line) {
                                    const std::lock_guard lock(mutex_);
                                    lines_.push_back(line);
                                  },
                              .writable = [this] { return audit_works_; }},
                    clock_, 1, routes_);
    server_.emplace(rest::ServerOptions{}, metrics_);
    server_->SetGate([this](rest::Request& head) { return access_->Admit(head); });
    routes_.Add(BackupRoute(*store_));
    routes_.AddTo(*server_, [this](auto handler) { return access_->Audited(std::move(handler)); });
    ASSERT_EQ(server_->Start(), absl::OkStatus());
  }
  kube::Response Ask(const std::string& token, const std::string& target = "/v1/backup") {
    auto client = kube::HttpTransport::Create({.server = server_->url(), .token = token});
    TAHOMA_CHECK_OK(client.status());
    auto answer =
        (*client)->Send({.target = target, .headers = {{"User-Agent", "backups/1"}}, .body = {}});
    TAHOMA_CHECK_OK(answer.status());
    return *std::move(answer);
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

  const testing::TempDir dir_;
  ManualClock clock_;
  rest::Metrics metrics_;
  std::unique_ptr<Store> store_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
  bool audit_works_ = true;
  RouteTable routes_;
  std::optional<AdminAccess> access_;
  std::optional<rest::Server> server_;
};

TEST_F(BackupRouteTest, AReadLeavesOneLineWithWhoWhatFromWhereAndTheResult) {
  Serve({AdminOfToken("ops")});
  const kube::Response answer = Ask("ops");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(CheckBackup(answer.body), absl::OkStatus());
  ASSERT_THAT(lines(), SizeIs(1));
  const json line = ParseJson(lines()[0]);
  EXPECT_EQ(line.at("user").at("username"), "admin");
  EXPECT_EQ(line.at("verb"), "get");
  EXPECT_EQ(line.at("requestURI"), "/v1/backup");
  EXPECT_EQ(line.at("sourceIPs"), json({"127.0.0.1"}));
  EXPECT_EQ(line.at("userAgent"), "backups/1");
  EXPECT_EQ(line.at("responseStatus").at("code"), 200);
  EXPECT_EQ(line.at("annotations").at("authorization.k8s.io/decision"), "allow");
  EXPECT_EQ(answer.header("Audit-Id"), line.at("auditID").get<std::string>());
  EXPECT_EQ(Ask("ops", "/v1/%62ackup").status, 200);
  EXPECT_THAT(lines(), SizeIs(2)) << "whatever the spelling";
}

TEST_F(BackupRouteTest, ARefusedReadLeavesOneLineToo) {
  Serve({AdminOfToken("ops"), {.name = "vera", .token = Sha256("vera"), .role = Role::kEdit}});
  EXPECT_EQ(Ask("vera").status, 403);
  ASSERT_THAT(lines(), SizeIs(1));
  const json line = ParseJson(lines()[0]);
  EXPECT_EQ(line.at("user").at("username"), "vera");
  EXPECT_EQ(line.at("requestURI"), "/v1/backup");
  EXPECT_EQ(line.at("sourceIPs"), json({"127.0.0.1"}));
  EXPECT_EQ(line.at("responseStatus").at("code"), 403);
  EXPECT_EQ(line.at("annotations").at("authorization.k8s.io/decision"), "forbid");
  EXPECT_EQ(Ask("nobody's").status, 401);
  EXPECT_THAT(lines(), SizeIs(1)) << "without a valid token nobody is known";
}

TEST_F(BackupRouteTest, WhereEverybodyMayReadItTheLineSaysSo) {
  Serve({});
  EXPECT_EQ(Ask("").status, 200);
  ASSERT_THAT(lines(), SizeIs(1));
  EXPECT_THAT(lines()[0], HasSubstr(R"("username":"system:unsecured")"));
}

TEST_F(BackupRouteTest, NothingIsReadWhileALineThatIsRequiredCannotBeWritten) {
  Serve({AdminOfToken("ops")});
  audit_works_ = false;
  const kube::Response answer = Ask("ops");
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("the audit file cannot be written"));
  EXPECT_THAT(lines(), IsEmpty());
}

}  // namespace
}  // namespace tahoma::controller
