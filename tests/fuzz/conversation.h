// Requests to an API server as text, for corpora that people can read.
//
// Thread safety: pure functions.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/rest/message.h"

namespace tahoma::fuzz {

// Requests as text, in this form and at most kRequestsMax of them; "%%" alone on a line ends one.
//
//   PATCH /api/v1/namespaces/default/pods/web
//   Content-Type: application/merge-patch+json
//
//   {"metadata":{"labels":{"a":"b"}}}
//   %%
//   GET /api/v1/pods
//
// Texts that lack something are read as far as they go.
inline constexpr std::size_t kRequestsMax = 8;
std::vector<rest::Request> ReadConversation(std::string_view text);

// A request for that path and query.
rest::Request RequestOf(std::string method, std::string target);

}  // namespace tahoma::fuzz
