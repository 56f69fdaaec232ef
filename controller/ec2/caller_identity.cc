#include "controller/ec2/caller_identity.h"

#include <fmt/format.h>

#include <utility>

#include "controller/ec2/xml.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

std::string StsSpace() { return fmt::format("https://sts.amazonaws.com/doc/{}/", kStsVersion); }

}  // namespace

absl::StatusOr<std::string> GetCallerIdentity(const Call& call) {
  TAHOMA_RETURN_IF_ERROR(MayGoOn(call));
  XmlWriter xml;
  xml.Element("GetCallerIdentityResponse", StsSpace(), [&] {
    xml.Element("GetCallerIdentityResult", [&] {
      xml.Text("Arn",
               fmt::format("arn:aws:iam::{}:user/{}", call.caller.account, call.caller.name));
      xml.Text("UserId", call.caller.name);
      xml.Text("Account", call.caller.account);
    });
    xml.Element("ResponseMetadata", [&] { xml.Text("RequestId", call.head.request_id); });
  });
  return std::move(xml).Finish();
}

std::string StsErrorAnswer(const Refusal& refusal, std::string_view request_id) {
  XmlWriter xml;
  xml.Element("ErrorResponse", StsSpace(), [&] {
    xml.Element("Error", [&] {
      xml.Text("Type", refusal.http_status < 500 ? "Sender" : "Receiver");
      xml.Text("Code", refusal.code);
      xml.Text("Message", refusal.message);
    });
    xml.Text("RequestId", request_id);
  });
  return std::move(xml).Finish();
}

}  // namespace tahoma::controller::ec2
