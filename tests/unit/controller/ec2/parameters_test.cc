#include "controller/ec2/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Parameters FormOf(std::string_view text) {
  auto parameters = Parameters::Parse(text);
  EXPECT_TRUE(parameters.ok()) << parameters.status();
  return *std::move(parameters);
}

std::string CodeOf(const absl::Status& status) { return std::string(RefusalOf(status).code); }

std::string CodeOf(std::string_view form) { return CodeOf(Parameters::Parse(form).status()); }

struct Pair {
  std::string name;
  std::vector<std::string> values;
};

std::vector<Pair> PairsOf(Reader& reader, std::size_t most = 10) {
  return reader.Items<Pair>("Filter", most, [](Reader& item) {
    return Pair{.name = item.Required("Name"), .values = item.Texts("Value", 3)};
  });
}

TEST(ParametersTest, FormsAreDecoded) {
  const Parameters form = FormOf("a=1&&b=x+y%26%3D&c&d=&e.1=%C3%BC&");
  EXPECT_THAT(form.values(), SizeIs(5));
  EXPECT_EQ(form.values().at("b"), "x y&=");
  EXPECT_EQ(form.values().at("c"), "");
  EXPECT_EQ(form.values().at("e.1"), "ü");
  EXPECT_THAT(FormOf("").values(), IsEmpty());
}

TEST(ParametersTest, FormsThatAreNoneAreRefused) {
  EXPECT_EQ(CodeOf("a=%"), "MalformedQueryString");
  EXPECT_EQ(CodeOf("a=%0g"), "MalformedQueryString");
  EXPECT_EQ(CodeOf("=1"), "MalformedQueryString");
  EXPECT_EQ(CodeOf("a=1&a=1"), "MalformedQueryString");
  EXPECT_EQ(CodeOf("a=%00"), "MalformedQueryString");
  EXPECT_EQ(CodeOf("a%20b=1"), "UnknownParameter");
  EXPECT_EQ(CodeOf("a=%FF"), "InvalidParameterValue");
  EXPECT_EQ(CodeOf("a=%01"), "InvalidParameterValue");
}

TEST(ParametersTest, FormsHaveBounds) {
  EXPECT_TRUE(Parameters::Parse("a=" + std::string(Parameters::kValueBytesMost, 'x')).ok());
  EXPECT_EQ(CodeOf("a=" + std::string(Parameters::kValueBytesMost + 1, 'x')),
            "InvalidParameterValue");
  EXPECT_EQ(CodeOf(std::string(Parameters::kNameBytesMost + 1, 'x') + "=1"), "UnknownParameter");
  EXPECT_EQ(CodeOf(std::string(Parameters::kFormBytesMost + 1, '&')), "MalformedQueryString");
  std::string many;
  for (std::size_t i = 0; i < Parameters::kParametersMost; ++i) many += fmt::format("a{}=&", i);
  EXPECT_TRUE(Parameters::Parse(many).ok());
  EXPECT_EQ(CodeOf(many + "b="), "MalformedQueryString");
}

TEST(ParametersTest, ADigestIsOfWhatIsAskedFor) {
  const auto digest = [](std::string_view text) { return FormOf(text).DigestWithout({"Page"}); };
  EXPECT_EQ(digest("a=1&b=2&Page=3"), digest("b=2&a=1"));
  EXPECT_NE(digest("a=1&b=2"), digest("a=2&b=1"));
  EXPECT_NE(digest("a=1%3Ab"), digest("a%2E1=b"));
}

TEST(ReaderTest, ValuesHaveTypes) {
  const Parameters form = FormOf(
      "Text=a&Number=-4&Flag=True&Time=2026-11-21T11:30:00.500Z&Ids.2=b&Ids.1=a&Ids.10=c&Empty=");
  Reader reader(form);
  EXPECT_EQ(reader.Text("Text"), "a");
  EXPECT_EQ(reader.Text("Absent"), std::nullopt);
  EXPECT_EQ(reader.AnyText("Empty"), "");
  EXPECT_EQ(reader.Number("Number", -10, 10), -4);
  EXPECT_EQ(reader.Flag("Flag"), true);
  EXPECT_EQ(FormatMicroTime(*reader.Time("Time")), "2026-11-21T11:30:00.500000Z");
  EXPECT_THAT(reader.Texts("Ids", 3), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(reader.Finish().ok()) << reader.Finish();
}

TEST(ReaderTest, AMistakeSaysWhatWouldBeLegal) {
  struct Case {
    std::string form, code, message;
    std::function<void(Reader&)> read;
  };
  for (const Case& c : std::vector<Case>{
           {"N=0", "InvalidParameterValue", "N is '0'; a whole number from 1 to 64 is legal",
            [](Reader& r) { r.Number("N", 1, 64); }},
           {"N=65", "InvalidParameterValue", "from 1 to 64",
            [](Reader& r) { r.Number("N", 1, 64); }},
           {"N=1x", "InvalidParameterValue", "from 1 to 64",
            [](Reader& r) { r.Number("N", 1, 64); }},
           {"N=99999999999999999999", "InvalidParameterValue", "from 1 to 64",
            [](Reader& r) { r.Number("N", 1, 64); }},
           {"", "MissingParameter", "must have the parameter N",
            [](Reader& r) { r.RequiredNumber("N", 1, 64); }},
           {"F=1", "InvalidParameterValue", "true and false are legal",
            [](Reader& r) { r.Flag("F"); }},
           {"T=yesterday", "InvalidParameterValue", "such as 2026-11-21T11:30:00Z",
            [](Reader& r) { r.Time("T"); }},
           {"A=", "InvalidParameterValue", "A is empty", [](Reader& r) { r.Text("A"); }},
           {"", "MissingParameter", "must have the parameter A",
            [](Reader& r) { r.Required("A"); }},
           {"A.1=x&A.2=y", "InvalidParameterValue", "there are 2 of A.N; at most 1 are legal",
            [](Reader& r) { r.Texts("A", 1); }},
           {"A.1=", "InvalidParameterValue", "A.1 is empty", [](Reader& r) { r.Texts("A", 1); }},
       }) {
    SCOPED_TRACE(c.form + " " + c.message);
    const Parameters form = FormOf(c.form);
    Reader reader(form);
    c.read(reader);
    EXPECT_FALSE(reader.ok());
    EXPECT_EQ(CodeOf(reader.Finish()), c.code);
    EXPECT_THAT(std::string(Message(reader.Finish())), HasSubstr(c.message));
  }
}

TEST(ReaderTest, ListsOfStructuresAreReadItemByItem) {
  const Parameters form =
      FormOf("Filter.1.Name=a&Filter.1.Value.1=x&Filter.1.Value.2=y&Filter.7.Name=b");
  Reader reader(form);
  const std::vector<Pair> pairs = PairsOf(reader);
  ASSERT_THAT(pairs, SizeIs(2));
  EXPECT_EQ(pairs[0].name, "a");
  EXPECT_THAT(pairs[0].values, ElementsAre("x", "y"));
  EXPECT_EQ(pairs[1].name, "b");
  EXPECT_TRUE(reader.Finish().ok()) << reader.Finish();
}

TEST(ReaderTest, AParameterThatNoActionReadsIsUnknown) {
  for (const std::string wrong :
       {"Filters.1.Name", "Filter.Name", "Filter.1.name", "Filter.0.Name", "Filter.01.Name",
        "Filter.1", "Filter.10000.Name", "Filter.1.Value", "Filter.1.Value.1.x", "Filter.-1.Name",
        "filter.1.Name", "Filter", "Filter."}) {
    SCOPED_TRACE(wrong);
    const Parameters form = FormOf(wrong + "=x");
    Reader reader(form);
    PairsOf(reader);
    reader.Number("MaxResults", 1, 5);
    const absl::Status status = reader.Finish();
    EXPECT_EQ(CodeOf(status), "UnknownParameter");
    EXPECT_EQ(Message(status),
              wrong + " is not known here; legal are Filter.N.Name, Filter.N.Value.N, MaxResults");
  }
}

TEST(ReaderTest, AnUnknownNameComesBeforeTheMistakeThatItCaused) {
  const Parameters form = FormOf("InstanceTyp=a");
  Reader reader(form);
  reader.Required("InstanceType");
  EXPECT_EQ(CodeOf(reader.Finish()), "UnknownParameter");
}

TEST(ReaderTest, TooManyItemsAreTooManyAndNotUnknown) {
  const Parameters form = FormOf("Filter.1.Name=a&Filter.2.Name=b");
  Reader reader(form);
  EXPECT_THAT(PairsOf(reader, 1), IsEmpty());
  EXPECT_EQ(CodeOf(reader.Finish()), "InvalidParameterValue");
}

TEST(ReaderTest, AbsentListsAreEmptyAndTheirMembersMissNothing) {
  const Parameters form = FormOf("");
  Reader reader(form);
  EXPECT_THAT(PairsOf(reader), IsEmpty());
  EXPECT_TRUE(reader.Finish().ok()) << reader.Finish();
}

TEST(ReaderTest, HasSeesValuesAndLists) {
  const Parameters form = FormOf("Tag-x=1&Tag.1.Key=a&Type=b");
  const Reader reader(form);
  EXPECT_TRUE(reader.Has("Tag"));
  EXPECT_TRUE(reader.Has("Type"));
  EXPECT_FALSE(reader.Has("Ta"));
  EXPECT_FALSE(reader.Has("Types"));
}

}  // namespace
}  // namespace tahoma::controller::ec2
