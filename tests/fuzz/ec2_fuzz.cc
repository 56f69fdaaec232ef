// EC2's Query API: whatever is asked, the answer is well-formed XML with a status that EC2 has, and
// nothing is a mistake of the server. Where signatures are verified, nobody without a secret is
// answered.
//
// The input is a line "METHOD QUERY", lines "Name: value", an empty line, and a body.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/ec2/ec2_api.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/utf8.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/fake_ec2_service.h"

namespace {

using namespace tahoma;
using controller::AccessKeys;
using namespace tahoma::controller::ec2;

std::string_view NextLine(std::string_view& rest) {
  const std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  return line;
}

rest::Request RequestOf(std::string_view input) {
  rest::Request request;
  const std::string_view first = NextLine(input);
  const std::size_t space = std::min(first.find(' '), first.size());
  request.method = first.substr(0, space);
  request.query = first.substr(std::min(space + 1, first.size()));
  request.path = "/";
  for (std::string_view line = NextLine(input); !line.empty(); line = NextLine(input)) {
    const std::size_t colon = std::min(line.find(": "), line.size());
    request.headers.emplace_back(line.substr(0, colon),
                                 line.substr(std::min(colon + 2, line.size())));
  }
  request.body = input;
  return request;
}

// Elements that end in the order in which they began, and between them no bare mark of XML.
void CheckXml(std::string_view xml) {
  constexpr std::string_view kHead = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  TAHOMA_CHECK(xml.starts_with(kHead) && IsUtf8(xml));
  xml.remove_prefix(kHead.size());
  std::vector<std::string_view> open;
  while (!xml.empty()) {
    TAHOMA_CHECK(xml.front() == '<');
    const std::size_t end = xml.find('>');
    TAHOMA_CHECK(end != std::string_view::npos);
    std::string_view tag = xml.substr(1, end - 1);
    if (tag.starts_with('/')) {
      TAHOMA_CHECK(!open.empty() && open.back() == tag.substr(1));
      open.pop_back();
    } else {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    xml.remove_prefix(end + 1);
    const std::string_view text = xml.substr(0, xml.find('<'));
    TAHOMA_CHECK(text.empty() || !open.empty());
    for (std::size_t at = text.find('&'); at != std::string_view::npos;
         at = text.find('&', at + 1)) {
      TAHOMA_CHECK(text.substr(at, 6).find(';') != std::string_view::npos);
    }
    for (const char c : text) {
      TAHOMA_CHECK(c != '>' && (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t'));
    }
    xml.remove_prefix(text.size());
  }
  TAHOMA_CHECK(open.empty());
}

std::shared_ptr<const AccessKeys> Keys() {
  auto keys = AccessKeys::Parse(
      "apiVersion: tahoma.dev/v1alpha1\nkind: AccessKeyFile\naccessKeys:\n"
      "- {accessKeyId: AKIAEXAMPLE000000001, secretAccessKey: 0123456789abcdef, name: ana, "
      "account: \"111122223333\"}\n",
      "keys");
  TAHOMA_CHECK(keys.ok());
  return std::make_shared<const AccessKeys>(*std::move(keys));
}

}  // namespace

void FuzzOne(std::string_view input) {
  static const std::shared_ptr<const AccessKeys> keys = Keys();
  const ManualClock clock(*ParseTime("2026-11-21T10:00:00Z"));
  FakeEc2Service service(/*blocks=*/3);
  const rest::Request request = RequestOf(input);

  Ec2Api open(service, {}, clock, 1);
  const rest::Response answer = open.Answer(request);
  CheckXml(answer.body);
  TAHOMA_CHECK(answer.status == 200 || (answer.status >= 400 && answer.status <= 412));
  TAHOMA_CHECK((answer.status == 200) == (answer.body.find("<Code>") == std::string::npos));

  Ec2Api closed(service, {.keys = [] { return keys; }}, clock, 1);
  const int bought = service.purchases();
  const rest::Response refusal = closed.Answer(request);
  CheckXml(refusal.body);
  TAHOMA_CHECK(refusal.status >= 400 && refusal.status <= 403 && service.purchases() == bought);
}
