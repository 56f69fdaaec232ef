#include "controller/ec2/xml.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tahoma::controller::ec2 {
namespace {

constexpr char kXmlHead[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

TEST(XmlTest, ElementsStandInElements) {
  XmlWriter xml;
  xml.Element("a", "http://x/", [&] {
    xml.Text("t", "1 < 2");
    xml.TextIfAny("none", "");
    xml.Number("n", -7);
    xml.Flag("f", true);
    xml.Items("set", std::vector<int>{1, 2}, [&](int n) { xml.Number("v", n); });
    xml.TextItems("names", std::vector<std::string>{"b"});
    xml.TextItems("empty", std::vector<std::string>{});
  });
  EXPECT_EQ(
      std::move(xml).Finish(),
      std::string(kXmlHead) +
          "<a xmlns=\"http://x/\"><t>1 &lt; 2</t><n>-7</n><f>true</f><set><item><v>1</v></item>"
          "<item><v>2</v></item></set><names><item>b</item></names><empty></empty></a>");
}

TEST(XmlTest, TextIsEscaped) {
  EXPECT_EQ(EscapeXml("<a href=\"x\">&'</a>\r\n\t"),
            "&lt;a href=&quot;x&quot;&gt;&amp;&apos;&lt;/a&gt;&#13;\n\t");
  EXPECT_EQ(EscapeXml("]]>"), "]]&gt;");
  EXPECT_EQ(EscapeXml("Zürich €😀"), "Zürich €😀");
}

TEST(XmlTest, CharactersThatXmlForbidsAreReplaced) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(EscapeXml(std::string("a\0b\x1b", 4)), "a" + replaced + "b" + replaced);
  EXPECT_EQ(EscapeXml("a\xff"), "a" + replaced);
  EXPECT_EQ(EscapeXml("\xc3"), replaced) << "half a character";
  EXPECT_EQ(EscapeXml("\xEF\xBF\xBF"), replaced + replaced + replaced) << "U+FFFF";
}

TEST(XmlTest, TimesHaveMilliseconds) {
  EXPECT_EQ(FormatMilliTime(*ParseTime("2026-11-21T11:30:00Z")), "2026-11-21T11:30:00.000Z");
  EXPECT_EQ(FormatMilliTime(*ParseTime("2026-11-21T11:30:00.0129Z")), "2026-11-21T11:30:00.012Z");
}

}  // namespace
}  // namespace tahoma::controller::ec2
