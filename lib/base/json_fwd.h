// The name of a JSON value, for headers; what it is: lib/base/json.h.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tahoma {

template <typename Key, typename Value, typename...>
class SharedMap;

using Json = nlohmann::basic_json<SharedMap>;

}  // namespace tahoma
