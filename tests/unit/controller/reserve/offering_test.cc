// The id of an offering says all of it, and nothing but an id that was made here is read.

#include "controller/reserve/offering.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "controller/reserve/refusal.h"
#include "lib/base/digest.h"
#include "lib/base/hex.h"

namespace tahoma::controller {
namespace {

Offering Sample() {
  return {.product = FindProduct("trn2.48xlarge"),
          .count = 16,
          .zone = "tahoma-1a",
          .any_cell = true,
          .start = *ParseTime("2026-11-24T11:30:00Z"),
          .end = *ParseTime("2026-12-01T11:30:00Z"),
          .rate = *ParseMoney("35.7608")};
}

TEST(OfferingTest, AnIdIsReadAsItWasWritten) {
  Offering offering = Sample();
  EXPECT_EQ(*ReadOfferingId(OfferingId(offering)), offering);
  EXPECT_EQ(offering.fee().ToString(), "96125.03");
  offering.start = *ParseTime("2026-11-24T02:53:00Z");
  offering.end = *ParseTime("2026-11-24T11:30:00Z");
  EXPECT_EQ(*ReadOfferingId(OfferingId(offering)), offering);
  EXPECT_EQ(offering.duration_hours(), 8);
  EXPECT_EQ(offering.duration_minutes(), 37);
}

TEST(OfferingTest, AnExtensionIdIsReadAsItWasWritten) {
  const ExtensionOffering offering{.reservation = "cr-0123456789abcdef0",
                                   .start = *ParseTime("2026-12-01T11:30:00Z"),
                                   .end = *ParseTime("2026-12-03T11:30:00Z"),
                                   .rate = *ParseMoney("35.7608"),
                                   .count = 2};
  EXPECT_EQ(*ReadExtensionOfferingId(ExtensionOfferingId(offering)), offering);
  EXPECT_EQ(offering.duration_hours(), 48);
  EXPECT_FALSE(ReadOfferingId(ExtensionOfferingId(offering)).ok());
}

TEST(OfferingTest, TextOfAnotherFormIsMalformed) {
  for (const std::string id :
       {"", "cb-", "cb", "cr-0123456789abcdef0", "cb-0", "cb-xy", "cb-0123456789abcdef0 ",
        "cb-0123456789abcdefg", "cb-012345678", "CB-0123456789abcdef0", "cb-0123456789ABCDEF0"}) {
    EXPECT_EQ(Ec2CodeOf(ReadOfferingId(id).status()), kOfferingMalformed.name) << id;
  }
  EXPECT_EQ(Ec2CodeOf(ReadOfferingId("cb-" + std::string(1 << 20, 'c')).status()),
            kOfferingMalformed.name);
  EXPECT_EQ(ReadOfferingId("CB-01").status().message(),
            "Invalid id: \"CB-01\" (expecting \"cb-...\" with 17 hexadecimal digits in small "
            "letters)");
}

TEST(OfferingTest, AnIdOfEc2sFormIsNotFound) {
  for (const std::string id : {"cb-01234567", "cb-0123456789abcdef0", "cb-02000000000000000000"}) {
    EXPECT_EQ(Ec2CodeOf(ReadOfferingId(id).status()), kOfferingNotFound.name) << id;
  }
}

// Returns the codes with which all changes of one digit of an id are refused, by the first and the
// last digit that is so.
std::map<std::string, std::pair<std::size_t, std::size_t>> RefusalsOfChanges() {
  const std::string id = OfferingId(Sample());
  std::map<std::string, std::pair<std::size_t, std::size_t>> refusals;
  for (std::size_t i = 3; i < id.size(); ++i) {
    std::string other = id;
    other[i] = other[i] == '0' ? '1' : '0';
    const auto read = ReadOfferingId(other);
    EXPECT_FALSE(read.ok()) << other;
    refusals.try_emplace(Ec2CodeOf(read.status()), i, i).first->second.second = i;
  }
  return refusals;
}

TEST(OfferingTest, AnIdWithAnyDigitChangedIsRefused) {
  const std::string id = OfferingId(Sample());
  const auto refusals = RefusalsOfChanges();
  EXPECT_EQ(refusals.at("InvalidCapacityBlockOfferingIdNotFound"),
            (std::pair<std::size_t, std::size_t>{3, id.size() - 1}));
  EXPECT_EQ(refusals.at("InvalidCapacityBlockOfferingIdExpired"),
            (std::pair<std::size_t, std::size_t>{5, 12}))
      << "the name of the key";
  for (std::size_t i = 0; i < id.size(); ++i) EXPECT_FALSE(ReadOfferingId(id.substr(0, i)).ok());
}

TEST(OfferingTest, AnIdIsGoodForTheKeyItWasMadeWithOnly) {
  OfferingKey key{};
  key.back() = 1;
  const std::string id = OfferingId(Sample(), key);
  EXPECT_EQ(*ReadOfferingId(id, key), Sample());
  EXPECT_EQ(Ec2CodeOf(ReadOfferingId(id).status()), kOfferingExpired.name)
      << "as by a controller with another store";
  EXPECT_EQ(id.size(), OfferingId(Sample()).size());
}

// The defect: anybody could make an id, with the digits that check it.
TEST(OfferingTest, NobodyWithoutTheKeyCanSealAnId) {
  const std::string id = OfferingId(Sample());
  const std::string bytes = *Unhex(id.substr(3));
  const std::string body = bytes.substr(0, bytes.size() - 16);
  const Sha256Digest digest = Sha256(body);
  for (const std::string& seal :
       {std::string(digest.begin(), digest.begin() + 16), std::string(16, '\0'), std::string(),
        HmacSha256("", "cb-" + body + "x").substr(0, 16)}) {
    EXPECT_EQ(Ec2CodeOf(ReadOfferingId("cb-" + Hex(body + seal)).status()), kOfferingNotFound.name);
  }
  // As of an extension's id with the same bytes.
  EXPECT_EQ(Ec2CodeOf(ReadExtensionOfferingId("cbe-" + id.substr(3)).status()),
            kOfferingNotFound.name);
}

// A later release may know other products and times.
TEST(OfferingTest, TimesBeyondAllCalendarsAreNotForSale) {
  const std::string id = OfferingId(Sample());
  const std::string bytes = *Unhex(id.substr(3));
  const std::size_t end = bytes.size() - 16 - 6 - 4;  // before the seal and the rate
  const std::string key(OfferingKey{}.size(), '\0');
  for (const std::size_t from : {end, end - 4}) {
    std::string odd = bytes.substr(0, bytes.size() - 16);
    for (std::size_t i = from; i < end + 4; ++i) odd[i] = '\xff';
    odd += HmacSha256(key, "cb-" + odd).substr(0, 16);
    EXPECT_EQ(Ec2CodeOf(ReadOfferingId("cb-" + Hex(odd)).status()), kOfferingNotFound.name);
  }
}

}  // namespace
}  // namespace tahoma::controller
