// Which fields of requests about Capacity Blocks may stand together, by the rules of their
// CustomResourceDefinitions: every subset of them.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/apiserver/schema/causes.h"
#include "controller/apiserver/validation/defaults.h"
#include "controller/apiserver/validation/validation.h"
#include "tests/unit/controller/apiserver/validation/crd_file.h"

namespace tahoma::controller::apiserver {
namespace {

using Fields = std::vector<std::pair<std::string, Json>>;
using Messages = std::multiset<std::string>;

const Fields kSearch = {{"instanceType", "trn2.48xlarge"},
                        {"instanceCount", 4},
                        {"ultraserverType", "u-trn2x64"},
                        {"ultraserverCount", 1},
                        {"capacityDurationHours", 24}};

Json ObjectOf(const Kind& kind, const Json& spec) {
  Json object = {{"apiVersion", "tahoma.dev/v1alpha1"},
                 {"kind", kind.kind},
                 {"metadata", {{"name", "r"}, {"namespace", "team-a"}}},
                 {"spec", spec}};
  ApplyDefaults(*kind.schema, object);
  return object;
}

Messages MessagesOf(const std::vector<Cause>& causes) {
  Messages messages;
  for (const Cause& cause : causes) {
    EXPECT_EQ(cause.field, "spec");
    messages.insert(cause.message);
  }
  return messages;
}

// Tries every subset of the fields; `required` are always set. `expected` says what is wrong with a
// spec.
void ExpectMessages(const std::string& plural, const Json& required, const Fields& fields,
                    const std::function<Messages(const Json& spec)>& expected) {
  const auto kind = KindOfCrdFile(plural);
  int valid = 0, wrong = 0;
  for (std::uint32_t subset = 0; subset < (1U << fields.size()); ++subset) {
    Json spec = required;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if ((subset >> i & 1U) != 0) spec[fields[i].first] = fields[i].second;
    }
    const Messages messages = expected(spec);
    EXPECT_EQ(MessagesOf(ValidateCreate(*kind, ObjectOf(*kind, spec))), messages) << spec.dump();
    ++(messages.empty() ? valid : wrong);
  }
  EXPECT_GT(valid, 0) << plural;
  EXPECT_GT(wrong, 0) << plural;
}

// Adds a message unless exactly one of the two fields is there.
void ExpectEither(const Json& spec, const std::string& one, const std::string& other,
                  Messages& messages) {
  if (spec.contains(one) != spec.contains(other)) return;
  messages.insert("Invalid value: must have either " + one + " or " + other);
}

TEST(RequestCrdTest, ASeriesNamesOfferingsOrASearch) {
  Fields fields = kSearch;
  fields.emplace_back("capacityBlockOfferingIds", Json::array({"cb-01"}));
  fields.emplace_back("occurrences", 2);
  ExpectMessages("capacityblockseries", Json::object(), fields, [](const Json& spec) {
    Messages messages;
    const bool named = spec.contains("capacityBlockOfferingIds");
    if (named == (spec.contains("capacityDurationHours") && spec.contains("occurrences"))) {
      messages.insert(
          "Invalid value: must have either capacityBlockOfferingIds, or capacityDurationHours and "
          "occurrences");
    }
    if (named) return messages;
    ExpectEither(spec, "instanceType", "ultraserverType", messages);
    ExpectEither(spec, "instanceCount", "ultraserverCount", messages);
    return messages;
  });
}

TEST(RequestCrdTest, AnEntryOfTheWaitlistNamesInstancesOrUltraServers) {
  Fields fields = kSearch;
  fields.pop_back();
  ExpectMessages("capacityblockwaitlistentries", {{"capacityDurationHours", 24}}, fields,
                 [](const Json& spec) {
                   Messages messages;
                   ExpectEither(spec, "instanceType", "ultraserverType", messages);
                   ExpectEither(spec, "instanceCount", "ultraserverCount", messages);
                   return messages;
                 });
}

TEST(RequestCrdTest, AnExtensionNamesOneBlockAndOneTime) {
  ExpectMessages("capacityblockextensions", Json::object(),
                 {{"capacityBlockName", "train"},
                  {"capacityReservationId", "cr-01"},
                  {"capacityBlockExtensionOfferingId", "cbe-01"},
                  {"capacityBlockExtensionDurationHours", 24}},
                 [](const Json& spec) {
                   Messages messages;
                   ExpectEither(spec, "capacityBlockName", "capacityReservationId", messages);
                   ExpectEither(spec, "capacityBlockExtensionOfferingId",
                                "capacityBlockExtensionDurationHours", messages);
                   return messages;
                 });
}

TEST(RequestCrdTest, ARequestThatWasMadeDoesNotChange) {
  struct Case {
    std::string plural;
    Json spec;
    Json patch;
  };
  for (const auto& [plural, spec, patch] : std::vector<Case>{
           {"capacityblockseries",
            {{"capacityBlockOfferingIds", Json::array({"cb-01"})}},
            {{"tags", {{"team", "x"}}}}},
           {"capacityblockwaitlistentries",
            {{"capacityDurationHours", 24},
             {"instanceType", "trn2.48xlarge"},
             {"instanceCount", 4}},
            {{"instanceCount", 5}}},
           {"capacityblockextensions",
            {{"capacityBlockName", "train"}, {"capacityBlockExtensionDurationHours", 24}},
            {{"capacityBlockExtensionDurationHours", 48}}}}) {
    const auto kind = KindOfCrdFile(plural);
    const Json before = ObjectOf(*kind, spec);
    Json after = before;
    after["metadata"]["labels"] = {{"a", "b"}};
    EXPECT_EQ(MessagesOf(ValidateUpdate(*kind, before, after, "")), Messages()) << plural;
    after["spec"].merge_patch(patch);
    EXPECT_EQ(MessagesOf(ValidateUpdate(*kind, before, after, "")),
              Messages{"Invalid value: field is immutable"})
        << plural;
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
