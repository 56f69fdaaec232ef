#include "lib/rest/probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tahoma::rest {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ProbesTest : public ::testing::Test {
 protected:
  ProbesTest() {
    probes_.Add(Probes::Kind::kReadyz, "store", [this] { return store_; });
    probes_.Add(Probes::Kind::kReadyz, "core", [] { return ""; });
    probes_.Add(Probes::Kind::kLivez, "core", [] { return ""; });
  }
  Response Get(const std::string& path, const std::string& query = "") {
    Request request;
    request.method = "GET";
    request.path = path;
    request.query = query;
    return probes_.Answer(request).value_or(Response::Text(0, "no probe"));
  }
  Probes probes_;
  std::string store_;
};

TEST_F(ProbesTest, IsOneWordWhileAllIsWell) {
  for (const char* path : {"/livez", "/readyz", "/healthz", "/readyz/store", "/livez/ping"}) {
    EXPECT_EQ(Get(path).status, 200) << path;
    EXPECT_EQ(Get(path).body, "ok") << path;
  }
}

TEST_F(ProbesTest, ListsItsChecksWhenAskedTo) {
  EXPECT_EQ(Get("/readyz", "verbose").body,
            "[+]ping ok\n[+]start ok\n[+]store ok\n[+]core ok\nreadyz check passed\n");
  EXPECT_EQ(Get("/livez", "verbose=true").body, "[+]ping ok\n[+]core ok\nlivez check passed\n");
}

TEST_F(ProbesTest, AFailedCheckIsNamedWithItsReasonWhereItBelongs) {
  store_ = "no room";
  EXPECT_EQ(Get("/readyz").status, 503);
  EXPECT_EQ(Get("/readyz").body,
            "[+]ping ok\n[+]start ok\n[-]store failed: no room\n[+]core ok\nreadyz check failed\n");
  EXPECT_EQ(Get("/readyz/store").body, "[-]store failed: no room\nreadyz check failed\n");
  EXPECT_EQ(Get("/readyz/core").status, 200);
  EXPECT_EQ(Get("/livez").status, 200) << "a restart would not help";
  store_ = "";
  EXPECT_EQ(Get("/readyz").status, 200);
}

TEST_F(ProbesTest, ChecksCanBeLeftOut) {
  store_ = "no room";
  EXPECT_EQ(Get("/readyz", "exclude=store").status, 200);
  EXPECT_EQ(Get("/readyz", "verbose&exclude=core&exclude=store").body,
            "[+]ping ok\n[+]start ok\n[+]store excluded: ok\n[+]core excluded: ok\n"
            "readyz check passed\n");
  EXPECT_EQ(Get("/readyz", "exclude=core").status, 503);
}

TEST_F(ProbesTest, ACheckThatIsNotThereIsNotFound) {
  EXPECT_EQ(Get("/readyz/none").status, 404);
  EXPECT_EQ(Get("/livez/store").status, 404);
}

TEST_F(ProbesTest, OtherPathsAreNotProbes) {
  for (const char* path : {"/", "/readyzz", "/api", "/metrics", ""}) {
    EXPECT_FALSE(Probes::IsProbe(path)) << path;
    EXPECT_EQ(Get(path).status, 0) << path;
  }
  EXPECT_TRUE(Probes::IsProbe("/readyz/"));
}

TEST_F(ProbesTest, ReadinessWaitsForTheStart) {
  probes_.SetReady("standing by");
  EXPECT_THAT(Get("/readyz").body, HasSubstr("[-]start failed: standing by\n"));
  EXPECT_EQ(Get("/livez").status, 200);
  probes_.SetReady("");
  EXPECT_THAT(Get("/readyz", "verbose").body, Not(HasSubstr("failed")));
}

}  // namespace
}  // namespace tahoma::rest
