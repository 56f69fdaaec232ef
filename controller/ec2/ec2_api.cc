#include "controller/ec2/ec2_api.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <utility>
#include <vector>

#include "controller/access/attributes.h"
#include "controller/ec2/actions.h"
#include "controller/ec2/answers.h"
#include "controller/ec2/caller_identity.h"
#include "controller/ec2/error.h"
#include "controller/ec2/parameters.h"
#include "controller/ec2/signature.h"
#include "lib/base/ascii.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

constexpr std::string_view kService = "ec2";
constexpr std::string_view kStsService = "sts";
constexpr std::string_view kPath = "/";
constexpr char kBlockGroup[] = "tahoma.dev";
constexpr char kBlockVersion[] = "v1alpha1";
constexpr std::string_view kReason = "the access key's role, or there are no access keys";

// "Sat, 28 Nov 2026 10:06:52 GMT" (RFC 9110, section 5.6.7).
std::string HttpDate(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch();
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT",
                     fmt::gmtime(static_cast<std::time_t>(seconds.count())));
}

rest::Response XmlResponse(int status, std::string body, const std::string& request_id) {
  rest::Response response;
  response.status = status;
  response.content_type = "text/xml;charset=UTF-8";
  response.body = std::move(body);
  response.headers = {{"x-amzn-requestid", request_id}, {"Cache-Control", "no-cache, no-store"}};
  return response;
}

// Returns the service for which a request says that it is signed; EC2 where it says none.
std::string_view ServiceOf(const rest::Request& head) {
  const bool sts = head.header("Authorization").find("/sts/aws4_request") != std::string_view::npos;
  return sts ? kStsService : kService;
}

rest::Response RefusalResponse(const rest::Request& head, const absl::Status& status,
                               const std::string& request_id) {
  const Refusal refusal = RefusalOf(status);
  std::string body = ServiceOf(head) == kStsService ? StsErrorAnswer(refusal, request_id)
                                                    : ErrorAnswer(refusal, request_id);
  return XmlResponse(refusal.http_status, std::move(body), request_id);
}

// SDKs understand nothing but EC2's errors, and send no bearer token.
std::optional<rest::Response> RefusalOfOther(const rest::Request& head,
                                             std::optional<rest::Response> refused,
                                             const std::string& request_id) {
  if (!refused || (refused->status != 401 && refused->status != 403)) return refused;
  rest::Response response = RefusalResponse(
      head,
      Refuse(refused->status == 401 ? kAuthFailure : kUnauthorizedOperation,
             "this server verifies no signatures and wants the bearer token of an administrator; "
             "callers with access keys need its option accessKeyFile"),
      request_id);
  response.headers.insert(response.headers.end(), refused->headers.begin(), refused->headers.end());
  return response;
}

bool IsOurFault(const absl::Status& status) {
  return !status.ok() && RefusalOf(status).code == "InternalError";
}

// Returns the parameters of a request: of its body and its query together.
absl::StatusOr<Parameters> FormOf(const rest::Request& request) {
  // HEAD is routed here like GET, and must not buy.
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

// A web page can make a browser send any query and any form, but cannot make the browser sign.
absl::Status CheckMayChange(const rest::Request& request, const Action& action, bool is_signed) {
  if (is_signed) return absl::OkStatus();
  const bool from_page =
      std::ranges::any_of(std::array{"Origin", "Referer", "Sec-Fetch-Site"},
                          [&](const char* header) { return !request.header(header).empty(); });
  if (request.method == "POST" && !from_page) return absl::OkStatus();
  return Refuse(kUnauthorizedOperation,
                "{} without a signature must be sent with POST, and not by a web page; legal is "
                "also a request that is signed with any access key",
                action.name);
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
  const std::string_view legal = action->of_sts ? kStsVersion : kApiVersion;
  if (version != legal && !version.empty()) {
    return Refuse(kNoSuchVersion, "Version must be {}", legal);
  }
  return action;
}

// Binds tokens to an account: a token of another account is refused.
Sha256Digest BindingOf(const Parameters& form, const Caller& caller) {
  const Sha256Digest digest = form.DigestWithout({"NextToken", "MaxResults"});
  return Sha256(caller.name_space + "\n" + caller.account +
                std::string(digest.begin(), digest.end()));
}

// The SDKs send the same id with each attempt of a call. An id of another form is not used.
std::string AttemptsId(const rest::Request& request) {
  constexpr std::size_t kBytesMost = 64;
  const std::string_view id = request.header("amz-sdk-invocation-id");
  const bool visible = std::ranges::all_of(id, [](char c) { return c > ' ' && c < '\x7f'; });
  return id.size() <= kBytesMost && visible ? std::string(id) : "";
}

}  // namespace

Ec2Api::Ec2Api(Ec2Service& service, Ec2Options options, const Clock& clock, std::uint64_t seed)
    : service_(service),
      options_(std::move(options)),
      clock_(clock),
      auditor_(options_.audit, clock, ~seed),
      rng_(seed) {
  TAHOMA_CHECK(IsAccount(options_.account));
}

void Ec2Api::AddRoutes(rest::Server& server) {
  for (const char* method : {"GET", "POST"}) {
    server.Route(method, std::string(kPath),
                 [this](const rest::Request& request) { return Answer(request); });
  }
}

// EC2 dates its answers, and SDKs set their clocks by the date.
rest::Response Ec2Api::WithDate(rest::Response answer) const {
  return std::move(answer).With("Date", HttpDate(clock_.WallNow()));
}

std::string Ec2Api::NextRequestId() {
  const MutexLock lock(mutex_);
  return NewUuid(rng_);
}

struct Ec2Api::Identified {
  Caller caller;
  std::optional<Signature> signature;
  // The key whose secret verifies the signature; null: no check is due.
  std::shared_ptr<const AccessKey> key = nullptr;
};

absl::StatusOr<Ec2Api::Identified> Ec2Api::Identify(const rest::Request& head) const {
  TAHOMA_ASSIGN_OR_RETURN(std::optional<Signature> signature, ReadSignature(head, ServiceOf(head)));
  if (!options_.keys) {
    const std::string name = head.identity != nullptr ? head.identity->name
                             : signature              ? signature->access_key_id
                                                      : "anonymous";
    return Identified{
        .caller = {.name = name, .name_space = options_.name_space, .account = options_.account},
        .signature = std::move(signature)};
  }
  if (!signature) {
    return Refuse(kMissingAuthenticationToken,
                  "the request must be signed with an access key (AWS Signature Version 4, in the "
                  "header Authorization)");
  }
  const std::shared_ptr<const AccessKeys> keys = options_.keys();
  const std::shared_ptr<const AccessKey> key(keys, keys->Find(signature->access_key_id));
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

rest::Gate Ec2Api::GateBefore(rest::Gate other) {
  return [this, other = std::move(other)](rest::Request& head) -> std::optional<rest::Response> {
    if (head.path != kPath) return other(head);
    if (!options_.keys) {
      std::optional<rest::Response> refused = RefusalOfOther(head, other(head), NextRequestId());
      if (!refused) return std::nullopt;
      return WithDate(*std::move(refused));
    }
    const absl::StatusOr<Identified> identified = Identify(head);
    if (identified.ok()) return std::nullopt;
    return WithDate(RefusalResponse(head, identified.status(), NextRequestId()));
  };
}

// The result of a request and, as far as known, the caller and the action.
struct Ec2Api::Outcome {
  absl::StatusOr<std::string> body = std::string();
  std::optional<Caller> caller = {};
  const Action* purchase = nullptr;  // null: no purchase
};

absl::StatusOr<std::string> Ec2Api::RunAction(const rest::Request& request,
                                              std::string_view request_id, Outcome& outcome) {
  TAHOMA_ASSIGN_OR_RETURN(const Identified identified, Identify(request));
  if (identified.key != nullptr) {
    TAHOMA_RETURN_IF_ERROR(VerifySignature(request, *identified.signature, identified.key->secret));
  }
  outcome.caller = identified.caller;
  TAHOMA_ASSIGN_OR_RETURN(const Parameters form, FormOf(request));
  Reader reader(form);
  TAHOMA_ASSIGN_OR_RETURN(const Action* const action, ActionOf(reader));
  const std::string_view service = action->of_sts ? kStsService : kService;
  if (identified.signature && identified.signature->service != service) {
    return Refuse(kSignatureDoesNotMatch, "{} is signed for the service {}; legal is {}",
                  action->name, identified.signature->service, service);
  }
  const bool dry_run = reader.Flag("DryRun").value_or(false);
  if (!action->buys.empty() && !dry_run) {
    outcome.purchase = action;
    TAHOMA_RETURN_IF_ERROR(CheckMayChange(request, *action, identified.signature.has_value()));
    if (!auditor_.MayChange()) {
      return Unavailable("the audit file cannot be written; nothing is changed");
    }
  }
  const std::string attempts_id = AttemptsId(request);
  absl::StatusOr<std::string> answer =
      action->run({.reader = reader,
                   .caller = identified.caller,
                   .service = service_,
                   .head = {.action = action->name, .request_id = request_id},
                   .binding = BindingOf(form, identified.caller),
                   .dry_run = dry_run,
                   .host = request.header("Host"),
                   .attempts_id = attempts_id,
                   .signature = identified.key ? std::string_view(identified.signature->hex)
                                               : std::string_view()});
  if (!dry_run || !answer.ok()) return answer;
  return Refuse(kDryRunOperation,
                "Request would have succeeded, but DryRun flag is set: {} has done nothing",
                action->name);
}

Ec2Api::Outcome Ec2Api::Run(const rest::Request& request, std::string_view request_id) {
  Outcome outcome;
  outcome.body = RunAction(request, request_id, outcome);
  return outcome;
}

// Writes the audit's line about a purchase: the creation of an object in the caller's namespace.
void Ec2Api::Record(const rest::Request& request, const Outcome& outcome, rest::Response& answer,
                    WallTime received) {
  const Attributes attributes{.verb = std::string(outcome.purchase->verb),
                              .group = kBlockGroup,
                              .version = kBlockVersion,
                              .resource = std::string(outcome.purchase->buys),
                              .name_space = outcome.caller->name_space};
  rest::Request of_caller = request;
  of_caller.body.clear();
  of_caller.identity =
      std::make_shared<const rest::Identity>(rest::Identity{.name = outcome.caller->name});
  const AccessDecision decision{.allowed = outcome.caller->may_buy,
                                .reason = outcome.caller->may_buy ? kReason : ""};
  const std::string id = auditor_.Record(of_caller, attributes, decision, answer, received);
  if (!id.empty()) answer.headers.emplace_back("Audit-Id", id);
}

rest::Response Ec2Api::Answer(const rest::Request& request) {
  const WallTime received = clock_.WallNow();
  const std::string request_id = NextRequestId();
  Outcome outcome = Run(request, request_id);
  rest::Response answer = outcome.body.ok()
                              ? XmlResponse(200, *std::move(outcome.body), request_id)
                              : RefusalResponse(request, outcome.body.status(), request_id);
  if (IsOurFault(outcome.body.status()) && options_.log) {
    options_.log(fmt::format("EC2 request {}: {}", request_id, Message(outcome.body.status())));
  }
  if (outcome.purchase != nullptr) Record(request, outcome, answer, received);
  return WithDate(std::move(answer));
}

}  // namespace tahoma::controller::ec2
