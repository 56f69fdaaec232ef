// The OpenAPI v3 documents that kubectl validates, explains and applies by.
//
//   OpenApiCache cache;
//   cache.Index(*kinds);                                // GET /openapi/v3
//   auto document = cache.Document(*kinds, "apis/tahoma.dev/v1alpha1");    // null: 404
//
// The address in the index carries the document's hash; a request with that hash may be cached for
// ever (`Cache-Control: public, immutable`), one with another hash is sent on (301) to the right
// one.
//
// Thread safety: OpenApiCache may be used from any thread.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "controller/apiserver/schema/kind.h"
#include "lib/base/json_fwd.h"
#include "lib/base/mutex.h"

namespace tahoma::controller::apiserver {

struct OpenApiDocument {
  std::string body;  // JSON
  std::string hash;  // SHA-256 of body, upper-case hex
};

class OpenApiCache {
 public:
  // {"paths": {"apis/tahoma.dev/v1alpha1": {"serverRelativeURL": "/openapi/v3/…?hash=…"}, …}}
  std::string Index(const KindTable& kinds);

  // `path` is "api/v1" or "apis/<group>/<version>"; nullptr: no such group version.
  std::shared_ptr<const OpenApiDocument> Document(const KindTable& kinds, std::string_view path);

 private:
  using Documents = std::map<std::string, std::shared_ptr<const OpenApiDocument>, std::less<>>;
  const Documents& Fresh(const KindTable& kinds) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  bool built_ ABSL_GUARDED_BY(mutex_) = false;
  Documents documents_ ABSL_GUARDED_BY(mutex_);
};

// The document of one group version, without a cache.
Json OpenApiOf(const KindTable& kinds, std::string_view group, std::string_view version);

}  // namespace tahoma::controller::apiserver
