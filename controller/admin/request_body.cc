#include "controller/admin/request_body.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// Reads a text without keeping it (the events of nlohmann::json_sax), until something is wrong.
class Check {
 public:
  bool null() { return Count(); }
  bool boolean(bool) { return Count(); }
  bool number_integer(std::int64_t) { return Count(); }
  bool number_unsigned(std::uint64_t) { return Count(); }
  bool number_float(double, const std::string&) { return Count(); }
  bool string(std::string&) { return Count(); }
  bool binary(Json::binary_t&) { return false; }  // JSON text has none
  bool start_object(std::size_t) { return Open(); }
  bool start_array(std::size_t) { return Open(); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(std::string& name) {
    if (keys_.back().insert(name).second) return true;
    constexpr std::size_t kShown = 100;
    status_ = InvalidArgument("the body has the key \"{}\" twice", name.substr(0, kShown));
    return false;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
    status_ = InvalidArgument("the body is not JSON");
    return false;
  }

  const absl::Status& status() const { return status_; }

 private:
  bool Count() {
    if (++values_ <= kAdminBodyValuesMost) return true;
    status_ = InvalidArgument("the body has more than {} values", kAdminBodyValuesMost);
    return false;
  }
  bool Open() {
    if (keys_.size() == kAdminBodyDepthMost) {
      status_ = InvalidArgument("the body is nested deeper than {} levels", kAdminBodyDepthMost);
      return false;
    }
    keys_.emplace_back();
    return Count();
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> keys_;  // of what is open, from the root on; of lists none
  std::size_t values_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Json> ReadBody(std::string_view text) {
  Check check;
  if (!Json::sax_parse(text.begin(), text.end(), &check)) return check.status();
  return ParseJson(text);
}

}  // namespace tahoma::controller
