#include "lib/base/json.h"

#include <algorithm>

namespace tahoma {

Json ParseJson(std::string_view text) { return Json::parse(text.begin(), text.end()); }

Json TryParseJson(std::string_view text) {
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

}  // namespace tahoma

template <>
tahoma::Json::string_t tahoma::Json::dump(int indent, char indent_char, bool ensure_ascii,
                                          error_handler_t error_handler) const {
  string_t text;
  nlohmann::detail::serializer<tahoma::Json> writer(
      nlohmann::detail::output_adapter<char, string_t>(text), indent_char, error_handler);
  writer.dump(*this, indent >= 0, ensure_ascii, static_cast<unsigned>(std::max(indent, 0)));
  return text;
}
