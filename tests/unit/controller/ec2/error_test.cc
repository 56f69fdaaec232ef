#include "controller/ec2/error.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

TEST(ErrorTest, ARefusalHasACodeAStatusOfHttpAndAMessage) {
  const Refusal refusal = RefusalOf(Refuse(kBlockNotFound, "there is no '{}'", "cb-1"));
  EXPECT_EQ(refusal.code, "InvalidCapacityBlockId.NotFound");
  EXPECT_EQ(refusal.http_status, 400);
  EXPECT_EQ(refusal.message, "there is no 'cb-1'");
}

TEST(ErrorTest, StatusesThatTheSdksReactTo) {
  EXPECT_EQ(RefusalOf(RefuseWith(kDryRunOperation, "")).http_status, 412);
  EXPECT_EQ(RefusalOf(RefuseWith(kUnauthorizedOperation, "")).http_status, 403);
  EXPECT_EQ(RefusalOf(RefuseWith(kAuthFailure, "")).http_status, 401);
  EXPECT_EQ(RefusalOf(RefuseWith(kInsufficientCapacity, "")).http_status, 500);
  EXPECT_EQ(RefusalOf(ResourceExhausted("")).code, "RequestLimitExceeded");
  EXPECT_EQ(RefusalOf(ResourceExhausted("")).http_status, 503) << "retried with this status only";
}

TEST(ErrorTest, AFailureWithoutACodeGetsTheNearest) {
  EXPECT_EQ(RefusalOf(InvalidArgument("a")).code, "InvalidParameterValue");
  EXPECT_EQ(RefusalOf(PermissionDenied("a")).code, "UnauthorizedOperation");
  EXPECT_EQ(RefusalOf(Unavailable("the disk is full")).message, "the disk is full");
  EXPECT_EQ(RefusalOf(Unavailable("a")).http_status, 503);
}

TEST(ErrorTest, AnUnforeseenFailureDoesNotTellItsReason) {
  const Refusal refusal = RefusalOf(Internal("/var/lib/secret is broken"));
  EXPECT_EQ(refusal.code, "InternalError");
  EXPECT_EQ(refusal.http_status, 500);
  EXPECT_EQ(refusal.message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace tahoma::controller::ec2
