#include "controller/ec2/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

TEST(ErrorTest, EveryCodeHasAnotherNameAndAStatusOfHttp) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternalError); ++i) {
    const Refusal refusal = RefusalOf(Refuse(static_cast<ErrorCode>(i), "why"));
    EXPECT_TRUE(names.insert(std::string(refusal.code)).second) << refusal.code;
    EXPECT_GE(refusal.http_status, 400) << refusal.code;
    EXPECT_LE(refusal.http_status, 503) << refusal.code;
    EXPECT_EQ(refusal.message, "why");
  }
}

TEST(ErrorTest, StatusesThatTheSdksReactTo) {
  EXPECT_EQ(RefusalOf(Refuse(ErrorCode::kDryRunOperation, "")).http_status, 412);
  EXPECT_EQ(RefusalOf(Refuse(ErrorCode::kUnauthorizedOperation, "")).http_status, 403);
  EXPECT_EQ(RefusalOf(Refuse(ErrorCode::kAuthFailure, "")).http_status, 401);
  EXPECT_EQ(RefusalOf(Refuse(ErrorCode::kRequestLimitExceeded, "")).http_status, 503)
      << "retried with this status only";
}

TEST(ErrorTest, AFailureWithoutACodeGetsTheNearest) {
  EXPECT_EQ(RefusalOf(InvalidArgument("a")).code, "InvalidParameterValue");
  EXPECT_EQ(RefusalOf(PermissionDenied("a")).code, "UnauthorizedOperation");
  EXPECT_EQ(RefusalOf(Unavailable("the disk is full")).message, "the disk is full");
  EXPECT_EQ(RefusalOf(Unavailable("a")).http_status, 503);
}

TEST(ErrorTest, WhatNobodyForesawKeepsItsReasonToItself) {
  const Refusal refusal = RefusalOf(Internal("/var/lib/secret is broken"));
  EXPECT_EQ(refusal.code, "InternalError");
  EXPECT_EQ(refusal.http_status, 500);
  EXPECT_EQ(refusal.message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace tahoma::controller::ec2
