#include "lib/kube/field.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/object.h"

namespace tahoma::kube {
namespace {

// Fields that are read lie nearer to the root; nothing deeper is looked through.
constexpr int kDepthMost = 32;
constexpr std::size_t kNameBytesMost = 64;  // of a name in a message
// "4.0" is an integer in a custom resource; up to here every integer is a double, too.
constexpr double kWholeMost = 9007199254740992.0;

const Json& Null() {
  static const Json kNull;
  return kNull;
}

std::string_view TypeOf(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return "a number";
    default:
      return "null";
  }
}

// "name" behind a path; "[tahoma.dev/gang]" when it is not a plain word.
std::string Step(std::string_view name) {
  const bool plain = !name.empty() && name.find_first_of(".[]/ ") == std::string_view::npos;
  name = CutUtf8(name, kNameBytesMost);
  return plain ? fmt::format(".{}", name) : fmt::format("[{}]", name);
}

// Finds `wanted` by its address, at or below `value`, and adds the way there to `path`.
bool FindPath(const Json& value, const Json& wanted, int depth, std::string& path) {
  if (&value == &wanted) return true;
  if (depth == 0) return false;
  const std::size_t length = path.size();
  const auto found_below = [&](const Json& below, std::string_view step) {
    path += step;
    if (FindPath(below, wanted, depth - 1, path)) return true;
    path.resize(length);
    return false;
  };
  if (value.is_object()) {
    for (const auto& [name, member] : MembersOf(value)) {
      if (found_below(member, Step(name))) return true;
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (found_below(value[i], fmt::format("[{}]", i))) return true;
    }
  }
  return false;
}

}  // namespace

bool Field::has_value() const { return !value_->is_null(); }

Field Field::At(std::string_view name) const {
  const Json* found = FindMember(*value_, name);
  if (found != nullptr) return {*found, *reading_};
  if (!value_->is_object() && !value_->is_null()) {
    Fail(fmt::format("is {}, must be an object", TypeOf(*value_)));
  }
  return {Null(), *reading_};
}

Field Field::Required(std::string_view name) const {
  const Field found = At(name);
  if (!found.has_value()) reading_->Fail(*value_, Step(name), "is missing");
  return found;
}

std::string_view Field::Text() const {
  if (value_->is_string()) return value_->get_ref<const std::string&>();
  if (!value_->is_null()) Fail(fmt::format("is {}, must be a string", TypeOf(*value_)));
  return {};
}

std::int64_t Field::Int(std::int64_t otherwise) const {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (value_->is_null()) return otherwise;
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > kMost) {
    Fail("is beyond 64 bits, must be an integer of 64 bits");
    return static_cast<std::int64_t>(kMost);
  }
  if (value_->is_number_integer()) return value_->get<std::int64_t>();
  if (value_->is_number_float()) {
    const double number = value_->get<double>();
    if (std::abs(number) <= kWholeMost && std::trunc(number) == number) {
      return static_cast<std::int64_t>(number);
    }
  }
  Fail(fmt::format("is {}, must be an integer", TypeOf(*value_)));
  return otherwise;
}

std::int32_t Field::Int32(std::int32_t otherwise) const {
  const std::int64_t value = Int(otherwise);
  const auto narrow = static_cast<std::int32_t>(value);
  if (narrow == value) return narrow;
  Fail("is beyond 32 bits, must be an integer of 32 bits");
  return otherwise;
}

bool Field::Bool(bool otherwise) const {
  if (value_->is_boolean()) return value_->get<bool>();
  if (!value_->is_null()) Fail(fmt::format("is {}, must be true or false", TypeOf(*value_)));
  return otherwise;
}

std::vector<std::string> Field::Texts(std::size_t most) const {
  const FieldItems items = Items(most);
  std::vector<std::string> texts;
  texts.reserve(items.size());
  for (const Field item : items) texts.emplace_back(item.Text());
  return texts;
}

FieldItems Field::Items(std::size_t most) const {
  if (value_->is_array()) {
    if (value_->size() <= most) return {*this, value_->size()};
    Fail(fmt::format("has {} entries; at most {} are taken", value_->size(), most));
  } else if (!value_->is_null()) {
    Fail(fmt::format("is {}, must be a list", TypeOf(*value_)));
  }
  return {*this, 0};
}

void Field::Entries(absl::FunctionRef<void(const std::string& name, Field value)> each) const {
  if (value_->is_object()) {
    for (const auto& [name, value] : MembersOf(*value_)) each(name, Field(value, *reading_));
  } else if (!value_->is_null()) {
    Fail(fmt::format("is {}, must be an object", TypeOf(*value_)));
  }
}

std::size_t Field::size() const {
  if (value_->is_structured()) return value_->size();
  if (!value_->is_null()) Fail(fmt::format("is {}, must be a list or an object", TypeOf(*value_)));
  return 0;
}

void Field::Fail(std::string_view why) const { reading_->Fail(*value_, "", why); }

Field FieldItems::operator[](std::size_t at) const {
  return {list_.value_->get_ref<const Json::array_t&>()[at], *list_.reading_};
}

absl::Status Reading::StatusOf(std::string_view kind) const {
  if (status_.ok()) return status_;
  const std::string_view name = NameOf(object_);
  return Annotate(status_, fmt::format("{} {}", kind,
                                       name.empty() ? std::string_view("without a name") : name));
}

void Reading::Fail(const Json& at, std::string_view below, std::string_view why) {
  if (!status_.ok()) return;
  std::string path;
  if (!FindPath(object_, at, kDepthMost, path)) path = ".?";
  path += below;
  if (path.starts_with('.')) path.erase(0, 1);
  status_ =
      InvalidArgument("{}{}{}", path.empty() ? "the object" : path, path.empty() ? " " : ": ", why);
}

}  // namespace tahoma::kube
