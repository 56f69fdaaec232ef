#include "controller/admin/open_api.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "lib/base/json.h"

namespace tahoma::controller {
namespace {

using nlohmann::ordered_json;

constexpr const char* kAbout =
    "Runs a fleet of Trainium2: what there is, what runs where and why, Capacity Blocks. Lists are "
    "answered in pages: `next` of one page is `from` of the one after it. A refusal is a problem "
    "of RFC 9457.";

Schema ProblemSchema() {
  return ObjectOf({{"type", Text("about:blank.")},
                   {"title", Text("The status in words.")},
                   {"status", Integer(400, 599, "The HTTP status.")},
                   {"detail", Text("What is wrong, and what would be right.", 1 << 16)},
                   {"code?", Text("EC2's code for it.")},
                   {"blocks?", ListOf(Named("HurtBlock"), "Capacity Blocks that would suffer.")}},
                  "A request that was refused.");
}

ordered_json Parameter(std::string_view place, const Field& field) {
  const bool optional = field.first.ends_with('?');
  ordered_json schema = ordered_json::parse(field.second);
  ordered_json parameter = {
      {"name", optional ? field.first.substr(0, field.first.size() - 1) : field.first},
      {"in", place},
      {"required", !optional}};
  parameter["schema"] = std::move(schema);
  return parameter;
}

// Returns the names in the braces of a path, in order.
std::vector<std::string> NamesIn(std::string_view path) {
  std::vector<std::string> names;
  for (std::size_t at = path.find('{'); at != std::string_view::npos; at = path.find('{', at + 1)) {
    names.emplace_back(path.substr(at + 1, path.find('}', at) - at - 1));
  }
  return names;
}

ordered_json Content(std::string_view type, const Schema& schema) {
  ordered_json content;
  content[std::string(type)]["schema"] = ordered_json::parse(schema);
  return content;
}

// The group of a route, for people: the word after the version.
std::string TagOfPath(std::string_view path) {
  path.remove_prefix(std::min(path.size(), std::string_view("/v1/").size()));
  return std::string(path.substr(0, path.find('/')));
}

ordered_json OperationOf(const Route& route) {
  ordered_json operation = {
      {"operationId", route.id}, {"summary", route.summary}, {"tags", {TagOfPath(route.path)}}};
  ordered_json parameters = ordered_json::array();
  for (const std::string& name : NamesIn(route.path)) {
    parameters.push_back(Parameter("path", {name, RouteTable::SchemaOfName(name)}));
  }
  for (const Field& field : route.query) parameters.push_back(Parameter("query", field));
  for (const Field& field : route.headers) parameters.push_back(Parameter("header", field));
  if (!parameters.empty()) operation["parameters"] = std::move(parameters);
  if (!route.body.empty()) {
    operation["requestBody"]["required"] = !route.body_optional;
    operation["requestBody"]["content"] = Content("application/json", route.body);
  }
  ordered_json success = {{"description", "Done."}};
  success["content"] = Content(route.answer_type, route.answer);
  if (route.tagged) {
    success["headers"]["ETag"] = {
        {"description", "The version of what was answered, for If-Match."},
        {"schema", {{"type", "string"}}}};
  }
  operation["responses"][std::to_string(route.status)] = std::move(success);
  operation["responses"]["default"] = {
      {"description", "It was refused, or could not be done."},
      {"content", Content("application/problem+json", Named("Problem"))}};
  return operation;
}

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

}  // namespace

std::string OpenApiOf(const RouteTable& routes) {
  ordered_json document = {{"openapi", "3.1.0"}};
  document["info"] = {{"title", "Tahoma admin API"}, {"version", "1"}, {"description", kAbout}};
  document["security"] = {{{"bearer", ordered_json::array()}}};
  for (const Route& route : routes.routes()) {
    document["paths"][route.path][LowerCase(route.method)] = OperationOf(route);
  }
  ordered_json& schemas = document["components"]["schemas"];
  for (const auto& [name, schema] : routes.schemas()) schemas[name] = ordered_json::parse(schema);
  schemas["Problem"] = ordered_json::parse(ProblemSchema());
  document["components"]["securitySchemes"]["bearer"] = {
      {"type", "http"},
      {"scheme", "bearer"},
      {"description", "A token of the identity file, or in a cluster one that it knows."}};
  return document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Route OpenApiRoute(const RouteTable& routes) {
  return {.path = "/v1/openapi.json",
          .id = "getOpenApi",
          .summary = "This document.",
          // As for the documents of the Kubernetes API: whoever is known may read it.
          .needs = {.verb = "get", .path = "/openapi/v3"},
          .answer = R"({"type":"object"})",
          .handler = [&routes](const rest::Request&) {
            return rest::Response::Json(200, OpenApiOf(routes));
          }};
}

}  // namespace tahoma::controller
