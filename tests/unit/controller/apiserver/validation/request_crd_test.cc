// Requests about Capacity Blocks are valid by their CustomResourceDefinitions' CEL exactly when
// they are by the server's own checks, whichever of their fields are set.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/validation/defaults.h"
#include "controller/apiserver/validation/validation.h"
#include "tests/unit/controller/apiserver/validation/crd_rules.h"

namespace tahoma::controller::apiserver {
namespace {

using Fields = std::vector<std::pair<std::string, Json>>;

const Fields kSearch = {{"instanceType", "trn2.48xlarge"},
                        {"instanceCount", 4},
                        {"ultraserverType", "u-trn2x64"},
                        {"ultraserverCount", 1},
                        {"capacityDurationHours", 24}};

// Tries every subset of the fields; `required` are always set.
void ExpectAgreement(const std::string& plural, const Json& required, const Fields& fields) {
  const CrdRules rules("charts/tahoma/crds/tahoma.dev_" + plural + ".yaml");
  int valid = 0, wrong = 0;
  for (std::uint32_t subset = 0; subset < (1U << fields.size()); ++subset) {
    Json object = {{"apiVersion", "tahoma.dev/v1alpha1"},
                   {"kind", rules.kind().kind},
                   {"metadata", {{"name", "r"}, {"namespace", "team-a"}}},
                   {"spec", required}};
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if ((subset >> i & 1U) != 0) object["spec"][fields[i].first] = fields[i].second;
    }
    ApplyDefaults(*rules.kind().schema, object);
    std::multiset<std::string> by_rules, by_server;
    for (const CrdRule* rule : rules.Broken(object)) by_rules.insert(rule->message);
    for (const Cause& cause : ValidateCreate(rules.kind(), object)) {
      by_server.insert(cause.message.substr(cause.message.rfind(": ") + 2));
    }
    EXPECT_EQ(by_rules, by_server) << object.at("spec").dump();
    ++(by_rules.empty() ? valid : wrong);
  }
  EXPECT_GT(valid, 0) << plural;
  EXPECT_GT(wrong, 0) << plural;
}

TEST(RequestCrdTest, ASeriesNamesOfferingsOrASearch) {
  Fields fields = kSearch;
  fields.emplace_back("capacityBlockOfferingIds", Json::array({"cb-01"}));
  fields.emplace_back("occurrences", 2);
  ExpectAgreement("capacityblockseries", Json::object(), fields);
}

TEST(RequestCrdTest, AnEntryOfTheWaitlistNamesInstancesOrUltraServers) {
  Fields fields = kSearch;
  fields.pop_back();
  ExpectAgreement("capacityblockwaitlistentries", {{"capacityDurationHours", 24}}, fields);
}

TEST(RequestCrdTest, AnExtensionNamesOneBlockAndOneTime) {
  ExpectAgreement("capacityblockextensions", Json::object(),
                  {{"capacityBlockName", "train"},
                   {"capacityReservationId", "cr-01"},
                   {"capacityBlockExtensionOfferingId", "cbe-01"},
                   {"capacityBlockExtensionDurationHours", 24}});
}

}  // namespace
}  // namespace tahoma::controller::apiserver
