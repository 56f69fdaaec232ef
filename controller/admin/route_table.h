// The routes of the admin API. One description of each route gives its parameters, answer,
// permission and handler.
//
//   RouteTable routes;
//   routes.Name("Gang", ObjectOf({{"name", Text("Its name.")}}));
//   routes.Add({.method = "GET",
//               .path = "/v1/gangs/{namespace}/{name}",
//               .id = "getGang",
//               .summary = "One gang.",
//               .needs = {.verb = "get", .group = "tahoma.dev", .resource = "gangs"},
//               .answer = Named("Gang"),
//               .handler = [&](const rest::Request& request) { return Show(request); }});
//   routes.AddTo(server, audited);
//
// The server's routes, the permissions (AttributesOf) and the OpenAPI document (open_api.h) all
// come from these descriptions. A handler gets only requests that fit them: names that are legal in
// Kubernetes, described parameters only, a JSON body of the schema in Request::parsed. Any other
// request is answered with a problem and EC2's code.
//
// Scope: the table; handlers are elsewhere.
//
// Thread safety: Add, Name and AddTo before use; afterwards all other functions from any thread.

#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/access/attributes.h"
#include "controller/admin/schema.h"
#include "lib/rest/message.h"
#include "lib/rest/router.h"
#include "lib/rest/server.h"

namespace tahoma::controller {

// The permission that a route asks for: a verb on a resource, in the namespace and with the name in
// the path. A route without a verb is for admins only.
struct Permission {
  std::string verb = {};
  std::string group = {};
  std::string resource = {};
  std::string subresource = {};
  std::string path = {};  // instead of a resource: the path to authorize
};

struct Route {
  std::string method = "GET";
  std::string path = {};  // "/v1/gangs/{namespace}/{name}"
  std::string id = {};    // of the operation: generated clients name a function after the id
  std::string summary = {};
  Permission needs = {};
  std::vector<Field> query = {};
  std::vector<Field> headers = {};  // that the handler reads
  Schema body = {};                 // empty: no body
  bool body_optional = false;
  int status = 200;    // of success
  Schema answer = {};  // of success
  std::string answer_type = "application/json";
  bool tagged = false;  // the answer has an ETag
  rest::Handler handler = {};
};

class RouteTable {
 public:
  // Gives a schema the name by which answers refer to it.
  void Name(std::string name, Schema schema) { schemas_[std::move(name)] = std::move(schema); }
  void Add(Route route);

  // Adds all routes to a server, before the server starts; the table must outlive the server.
  // `audited` wraps a handler so that each call leaves a line in the audit (AdminAccess::Audited).
  using Audited = std::function<rest::Handler(rest::Handler)>;
  void AddTo(rest::Server& server, const Audited& audited) const;

  // Returns the permission that the request needs; PathAttributes where no route matches.
  Attributes AttributesOf(const rest::Request& head) const;

  const std::deque<Route>& routes() const { return routes_; }
  const std::map<std::string, Schema>& schemas() const { return schemas_; }

  // Returns the schema of a {name} of a path.
  static Schema SchemaOfName(std::string_view name);

 private:
  std::deque<Route> routes_;  // a deque: by_pattern_ points to its routes
  std::map<std::string, Schema> schemas_;
  rest::Router router_;  // to the same routes, without handlers
  std::map<std::pair<std::string, std::string>, const Route*> by_pattern_;
};

}  // namespace tahoma::controller
