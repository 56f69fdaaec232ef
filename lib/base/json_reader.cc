#include "lib/base/json_reader.h"

#include <algorithm>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace tahoma {
namespace {

// Builds the value as the parser goes along (the events of nlohmann::json_sax).
class Builder {
 public:
  explicit Builder(const JsonBounds& bounds) : bounds_(bounds) {}

  bool null() { return Add(nullptr); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(std::int64_t value) { return Add(value); }
  bool number_unsigned(std::uint64_t value) { return Add(value); }
  bool number_float(double value, const std::string&) { return Add(value); }
  bool string(std::string& value) { return Add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // JSON text has none
  bool start_object(std::size_t) { return Open(Json::object()); }
  bool start_array(std::size_t) { return Open(Json::array()); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(std::string& name) {
    auto& fields = open_.back().container->get_ref<Json::object_t&>();
    if (fields.size() == bounds_.members) {
      status_ = ResourceExhausted("wider than {} members of one object", bounds_.members);
      return false;
    }
    const auto [at, is_new] = fields.emplace(std::move(name));
    open_.back().key = &at->first;
    field_ = &at->second;
    if (!is_new) Report();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    status_ = InvalidArgument("{}", error.what());
    return false;
  }

  const absl::Status& status() const { return status_; }
  JsonRead Finish() { return {std::move(root_), std::move(found_)}; }

 private:
  struct Level {
    Json* container;
    const std::string* key = nullptr;  // of objects: the field that is being read
  };

  template <typename T>
  bool Add(T&& value) {
    if (IsTooMuch()) return false;
    Place(std::forward<T>(value));
    return true;
  }
  // Whether there is no room for another value.
  bool IsTooMuch() {
    if (++values_ > bounds_.values) {
      status_ = ResourceExhausted("more than {} values", bounds_.values);
      return true;
    }
    if (open_.empty() || !open_.back().container->is_array()) return false;
    if (open_.back().container->size() < bounds_.items) return false;
    status_ = ResourceExhausted("wider than {} items of one list", bounds_.items);
    return true;
  }
  template <typename T>
  Json* Place(T&& value) {
    if (open_.empty()) return &(*root_ = std::forward<T>(value));
    Json& container = *open_.back().container;
    if (container.is_object()) return &(*field_ = std::forward<T>(value));
    auto& items = container.get_ref<Json::array_t&>();
    return &items.emplace_back(std::forward<T>(value));
  }
  bool Open(Json container) {
    if (IsTooMuch()) return false;
    if (open_.size() == bounds_.depth) {
      status_ = ResourceExhausted("nested deeper than {} levels", bounds_.depth);
      return false;
    }
    open_.push_back({Place(std::move(container))});
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  void Report() {
    std::string path;
    for (const Level& level : open_) {
      if (level.key == nullptr) {
        path += fmt::format("[{}]", level.container->size() - 1);
      } else {
        path += (path.empty() ? "" : ".") + CutName(*level.key);
      }
    }
    if (std::find(found_.begin(), found_.end(), path) == found_.end() &&
        found_.size() < bounds_.duplicates) {
      found_.push_back(std::move(path));
    }
  }

  const JsonBounds& bounds_;
  std::shared_ptr<Json> root_ = std::make_shared<Json>();
  std::vector<Level> open_;  // from the root to where the parser is
  Json* field_ = nullptr;    // where the value of the key that was read last belongs
  std::vector<std::string> found_;
  std::size_t values_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<JsonRead> ReadBoundedJson(std::string_view text, const JsonBounds& bounds) {
  Builder builder(bounds);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return builder.status();
  return builder.Finish();
}

}  // namespace tahoma
