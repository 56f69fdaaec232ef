// Finds the handler of a path.
//
//   Router router;
//   router.Add("GET", "/v1/gangs/{name}", handler);
//   const Router::Match match = router.Find("GET", "/v1/gangs/a");    // params {{"name", "a"}}
//
// Scope: paths and methods, no I/O.
//
// Thread safety: Add before use; Find from any thread after that.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/rest/server.h"

namespace tahoma::rest {

class Router {
 public:
  struct Match {
    const Handler* handler = nullptr;
    const std::string* pattern = nullptr;
    std::vector<std::pair<std::string, std::string>> params;
    std::string allow;       // with no handler: the methods that this path does have, "GET, PUT"
    bool malformed = false;  // the path has a bad % or an encoded slash
  };

  void Add(std::string method, std::string pattern, Handler handler);
  // The first route added that fits. `path` is as sent, still encoded.
  Match Find(std::string_view method, std::string_view path) const;

 private:
  struct Entry {
    std::string method;
    std::string pattern;
    std::vector<std::string> segments;
    Handler handler;
  };
  std::vector<Entry> entries_;
};

}  // namespace tahoma::rest
