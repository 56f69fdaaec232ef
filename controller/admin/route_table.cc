#include "controller/admin/route_table.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "controller/admin/answer.h"
#include "controller/admin/request_body.h"
#include "controller/reserve/refusal.h"
#include "lib/base/ascii.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kJsonType = "application/json";

// Returns the parameters of a query, in order; refused when a parameter cannot be decoded.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParametersOf(
    std::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = rest::PercentDecode(pair.substr(0, equals), true);
    auto value = rest::PercentDecode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) {
      return Refuse(kInvalidParameterValue,
                    "the query has a % that two hex digits do not follow, or a NUL");
    }
    parameters.emplace_back(*std::move(name), *std::move(value));
  }
  return parameters;
}

bool IsOptional(const Field& field) { return field.first.ends_with('?'); }

std::string_view PlainName(const Field& field) {
  std::string_view name = field.first;
  if (IsOptional(field)) name.remove_suffix(1);
  return name;
}

absl::Status CheckQuery(const Route& route, const rest::Request& request) {
  TAHOMA_ASSIGN_OR_RETURN(const auto parameters, ParametersOf(request.query));
  for (const auto& [name, value] : parameters) {
    const auto known =
        std::find_if(route.query.begin(), route.query.end(),
                     [&, n = std::string_view(name)](const Field& f) { return PlainName(f) == n; });
    if (known == route.query.end()) {
      return Refuse(kInvalidParameterValue, "there is no parameter \"{}\" here", name);
    }
    const auto same = [&, n = std::string_view(name)](const auto& p) { return p.first == n; };
    if (std::count_if(parameters.begin(), parameters.end(), same) > 1) {
      return Refuse(kInvalidParameterValue, "the parameter {} is there twice", name);
    }
    TAHOMA_RETURN_IF_ERROR(CheckParameter(known->second, name, value));
  }
  for (const Field& field : route.query) {
    if (!IsOptional(field) && !request.query_value(PlainName(field))) {
      return Refuse(kMissingParameter, "{} is missing", PlainName(field));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckHeaders(const Route& route, const rest::Request& request) {
  for (const Field& field : route.headers) {
    const std::string value(request.header(PlainName(field)));
    if (value.empty()) continue;  // the handler decides about an absent header
    TAHOMA_RETURN_IF_ERROR(CheckParameter(field.second, PlainName(field), value));
  }
  return absl::OkStatus();
}

bool IsJson(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  type.erase(type.find_last_not_of(' ') + 1);
  return EqualsIgnoringCase(type, kJsonType);
}

// Calls the handler, if the request fits its route.
rest::Response Take(const Route& route, const rest::Request& request) {
  for (const auto& [name, value] : request.params) {
    const absl::Status fits = CheckParameter(RouteTable::SchemaOfName(name), name, value);
    if (!fits.ok()) return Refused(fits);
  }
  if (const absl::Status fits = CheckQuery(route, request); !fits.ok()) return Refused(fits);
  if (const absl::Status fits = CheckHeaders(route, request); !fits.ok()) return Refused(fits);
  if (route.body.empty()) return route.handler(request);
  rest::Request checked = request;
  auto body = std::make_shared<Json>(Json::object());
  if (!request.body.empty() || !route.body_optional) {
    if (!IsJson(request.header("Content-Type"))) {
      return rest::Response::Problem(415, fmt::format("Content-Type: must be {}, not \"{}\"",
                                                      kJsonType, request.header("Content-Type")));
    }
    absl::StatusOr<Json> read = ReadBody(request.body);
    if (!read.ok()) {
      return Refused(Refuse(kInvalidParameterValue, "{}", Message(read.status())));
    }
    *body = *std::move(read);
    if (const absl::Status fits = CheckBody(route.body, *body); !fits.ok()) return Refused(fits);
  }
  checked.parsed = std::move(body);
  return route.handler(checked);
}

std::string NamespaceOf(const rest::Request& head, const rest::Router::Match& match) {
  for (const auto& [name, value] : match.params) {
    if (name == "namespace") return value;
  }
  return head.query_value("namespace").value_or("");
}

}  // namespace

Schema RouteTable::SchemaOfName(std::string_view name) {
  if (name == "namespace") {
    return TextLike("[a-z0-9]([-a-z0-9]*[a-z0-9])?",
                    "a namespace: lower-case letters, digits and \"-\"", 63);
  }
  if (name == "chip") return Integer(0, 15, "The chip's number on its node.");
  return TextLike("[a-z0-9]([-a-z0-9.]*[a-z0-9])?",
                  "a name: lower-case letters, digits, \"-\" and \".\"", 253);
}

void RouteTable::Add(Route route) {
  TAHOMA_CHECK(!route.id.empty() && route.handler != nullptr);
  const Route& kept = routes_.emplace_back(std::move(route));
  TAHOMA_CHECK(by_pattern_.emplace(std::pair(kept.method, kept.path), &kept).second);
  router_.Add(kept.method, kept.path, nullptr);
}

void RouteTable::AddTo(rest::Server& server, const Audited& audited) const {
  for (const Route& route : routes_) {
    rest::Handler handler = [&route](const rest::Request& request) { return Take(route, request); };
    const Attributes needs{.verb = route.needs.verb, .resource = route.needs.resource};
    const bool for_admins = route.needs.verb.empty();
    if (for_admins || !needs.reads()) handler = audited(std::move(handler));
    server.Route(route.method, route.path, std::move(handler));
  }
}

Attributes RouteTable::AttributesOf(const rest::Request& head) const {
  const rest::Router::Match match = router_.Find(head.method, head.path);
  if (match.handler == nullptr) return PathAttributes(head.method, head.path);
  const std::string method = head.method == "HEAD" ? "GET" : head.method;
  const Permission& needs = by_pattern_.at({method, *match.pattern})->needs;
  if (needs.verb.empty()) return PathAttributes(head.method, head.path);
  if (!needs.path.empty()) return {.verb = needs.verb, .path = needs.path};
  Attributes wanted{.verb = needs.verb,
                    .group = needs.group,
                    .resource = needs.resource,
                    .subresource = needs.subresource,
                    .name_space = NamespaceOf(head, match)};
  for (const auto& [name, value] : match.params) {
    if (name == "name") wanted.name = value;
  }
  return wanted;
}

}  // namespace tahoma::controller
