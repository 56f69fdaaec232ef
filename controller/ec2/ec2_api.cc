#include "controller/ec2/ec2_api.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "controller/ec2/actions.h"
#include "controller/ec2/answers.h"
#include "controller/ec2/error.h"
#include "controller/ec2/parameters.h"
#include "controller/ec2/signature.h"
#include "lib/base/ascii.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

constexpr std::string_view kService = "ec2";

rest::Response XmlResponse(int status, std::string body, const std::string& request_id) {
  rest::Response response;
  response.status = status;
  response.content_type = "text/xml;charset=UTF-8";
  response.body = std::move(body);
  response.headers = {{"x-amzn-requestid", request_id}, {"Cache-Control", "no-cache, no-store"}};
  return response;
}

rest::Response RefusalResponse(const absl::Status& status, const std::string& request_id) {
  const Refusal refusal = RefusalOf(status);
  return XmlResponse(refusal.http_status, ErrorAnswer(refusal, request_id), request_id);
}

// The form of a request: that of its body and of its query together.
absl::StatusOr<Parameters> FormOf(const rest::Request& request) {
  // HEAD comes here as GET does, and must not buy.
  if (request.method != "GET" && request.method != "POST") {
    return Refuse(kInvalidAction, "the method is {}; GET and POST are legal", request.method);
  }
  if (request.body.empty()) return Parameters::Parse(request.query);
  constexpr std::string_view kForm = "application/x-www-form-urlencoded";
  const std::string_view type = request.header("Content-Type");
  if (!EqualsIgnoringCase(type.substr(0, type.find_first_of("; ")), kForm)) {
    return Refuse(kMalformedQueryString, "the body's Content-Type must be {}", kForm);
  }
  return Parameters::Parse(request.query.empty() ? request.body
                                                 : request.query + "&" + request.body);
}

absl::StatusOr<const Action*> ActionOf(Reader& reader) {
  const std::optional<std::string> name = reader.Text("Action");
  if (!name) {
    return Refuse(kMissingAction, "the request must have the parameter Action: {}",
                  fmt::join(ActionNames(), ", "));
  }
  const Action* action = FindAction(*name);
  if (action == nullptr) {
    return Refuse(kInvalidAction, "the action {} is not served; legal are {}",
                  name->substr(0, Parameters::kNameBytesMost), fmt::join(ActionNames(), ", "));
  }
  const std::string version = reader.Required("Version");
  if (version != kApiVersion && !version.empty()) {
    return Refuse(kNoSuchVersion, "Version must be {}", kApiVersion);
  }
  return action;
}

// Tokens of one account are no good for another.
Sha256Digest BindingOf(const Parameters& form, const Caller& caller) {
  const Sha256Digest digest = form.DigestWithout({"NextToken", "MaxResults"});
  return Sha256(caller.name_space + "\n" + caller.account +
                std::string(digest.begin(), digest.end()));
}

// The SDKs send the same id with each attempt of one call. What is none of theirs is not used.
std::string AttemptsId(const rest::Request& request) {
  constexpr std::size_t kBytesMost = 64;
  const std::string_view id = request.header("amz-sdk-invocation-id");
  const bool visible = std::ranges::all_of(id, [](char c) { return c > ' ' && c < '\x7f'; });
  return id.size() <= kBytesMost && visible ? std::string(id) : "";
}

}  // namespace

Ec2Api::Ec2Api(Ec2Service& service, Ec2Options options, const Clock& clock, std::uint64_t seed)
    : service_(service), options_(std::move(options)), clock_(clock), rng_(seed) {
  TAHOMA_CHECK(IsAccount(options_.account));
}

void Ec2Api::AddRoutes(rest::Server& server) {
  for (const char* method : {"GET", "POST"}) {
    server.Route(method, "/", [this](const rest::Request& request) { return Answer(request); });
  }
}

bool Ec2Api::Serves(const rest::Request& head) { return head.path == "/"; }

std::string Ec2Api::NextRequestId() {
  const MutexLock lock(mutex_);
  return NewUuid(rng_);
}

struct Ec2Api::Identified {
  Caller caller;
  std::optional<Signature> signature;
  const AccessKey* key =
      nullptr;  // with which the signature is yet to be verified; null: with none
};

absl::StatusOr<Ec2Api::Identified> Ec2Api::Identify(const rest::Request& head) const {
  TAHOMA_ASSIGN_OR_RETURN(std::optional<Signature> signature, ReadSignature(head, kService));
  if (options_.keys == nullptr) {
    const std::string name = head.identity != nullptr ? head.identity->name
                             : signature              ? signature->access_key_id
                                                      : "anonymous";
    return Identified{
        .caller = {.name = name, .name_space = options_.name_space, .account = options_.account},
        .signature = {}};
  }
  if (!signature) {
    return Refuse(kMissingAuthenticationToken,
                  "the request must be signed with an access key (AWS Signature Version 4, in the "
                  "header Authorization)");
  }
  const AccessKey* key = options_.keys->Find(signature->access_key_id);
  if (key == nullptr) {
    return Refuse(kAuthFailure,
                  "the access key {} is not known here; legal are those of the access key file",
                  signature->access_key_id);
  }
  if (!head.header("X-Amz-Security-Token").empty()) {
    return Refuse(kAuthFailure,
                  "access keys have no sessions here; leave X-Amz-Security-Token out");
  }
  TAHOMA_RETURN_IF_ERROR(CheckTime(*signature, clock_.WallNow()));
  return Identified{.caller = {.name = key->name,
                               .name_space = key->name_space,
                               .account = key->account,
                               .may_buy = key->may_buy},
                    .signature = std::move(signature),
                    .key = key};
}

std::optional<rest::Response> Ec2Api::Admit(const rest::Request& head) {
  const absl::StatusOr<Identified> identified = Identify(head);
  if (identified.ok()) return std::nullopt;
  return RefusalResponse(identified.status(), NextRequestId());
}

absl::StatusOr<std::string> Ec2Api::Run(const rest::Request& request, std::string_view request_id) {
  TAHOMA_ASSIGN_OR_RETURN(const Identified identified, Identify(request));
  if (identified.key != nullptr) {
    TAHOMA_RETURN_IF_ERROR(VerifySignature(request, *identified.signature, identified.key->secret));
  }
  TAHOMA_ASSIGN_OR_RETURN(const Parameters form, FormOf(request));
  Reader reader(form);
  TAHOMA_ASSIGN_OR_RETURN(const Action* const action, ActionOf(reader));
  const std::string attempts_id = AttemptsId(request);
  const Call call{.reader = reader,
                  .caller = identified.caller,
                  .service = service_,
                  .head = {.action = action->name, .request_id = request_id},
                  .binding = BindingOf(form, identified.caller),
                  .dry_run = reader.Flag("DryRun").value_or(false),
                  .attempts_id = attempts_id};
  return action->run(call);
}

rest::Response Ec2Api::Answer(const rest::Request& request) {
  const std::string request_id = NextRequestId();
  absl::StatusOr<std::string> body = Run(request, request_id);
  if (!body.ok()) return RefusalResponse(body.status(), request_id);
  return XmlResponse(200, *std::move(body), request_id);
}

}  // namespace tahoma::controller::ec2
