// A single list of a message's fields, which both writes and reads the message as JSON.
//
//   constexpr auto kWatch = [](auto& list, auto& watch) {   // `watch` is const when it is written
//     list.Int("generation", watch.generation, 0, INT64_MAX, kOptional);
//     list.String("name", watch.name, 1, 64);
//   };
//   std::string text = WriteMessage(Watch{.generation = 7, .name = "node-1"}, kWatch);
//   absl::StatusOr<Watch> read = ReadMessage<Watch>(text, "watch", kWatch);
//   // kInvalidArgument: "watch.name has 0 bytes; expected 1 to 64"
//
// A required field must be present; an absent optional field leaves the message's value as it is.
// Lists and objects are optional. A number may be an integer, a duration, a time, or a type that is
// constructed from an int and has value(). Unknown fields are ignored.
//
// Scope: messages with fields of fixed types and bounds. Rules about several fields go into Check,
// which only the reader calls.
//
// Thread safety: one thread per object; the functions are pure.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::wire {

enum Need : std::uint8_t { kRequired, kOptional };

// Returns the number as an integer: a duration in its own unit, a time since its clock's epoch.
template <typename Number>
std::int64_t ToInt(const Number& number) {
  if constexpr (requires { number.time_since_epoch(); }) return number.time_since_epoch().count();
  if constexpr (requires { number.count(); }) return number.count();
  if constexpr (requires { number.value(); }) return number.value();
  if constexpr (std::integral<Number>) return static_cast<std::int64_t>(number);
}

template <typename Number>
Number FromInt(std::int64_t value) {
  if constexpr (requires { typename Number::clock; }) {
    return Number(typename Number::duration(value));
  } else if constexpr (requires(Number number) { number.value(); }) {
    return Number(static_cast<int>(value));
  } else {
    return static_cast<Number>(value);
  }
}

// Writes a message's fields. FieldReader describes each function; the writer ignores the bounds.
class FieldWriter {
 public:
  // Adds the fields to `object`, which must outlive the writer.
  explicit FieldWriter(Json& object) : object_(object) {}

  template <typename Number, typename... Bounds>
  void Int(std::string_view key, const Number& value, Bounds...) {
    Put(key, ToInt(value));
  }
  void Bool(std::string_view key, bool value, Need = kRequired);
  void String(std::string_view key, std::string_view value, std::size_t min_bytes, std::size_t,
              Need need = kRequired);
  template <typename Enum, typename Names>
  void Name(std::string_view key, Enum value, const Names& names) {
    String(key, names.at(static_cast<std::size_t>(value)), 0, 0);
  }
  void Hex(std::string_view key, std::uint64_t value);
  void Strings(std::string_view key, const std::vector<std::string>& values, std::size_t max_count,
               std::size_t max_bytes);
  template <typename Range, typename... Bounds>
  void Ints(std::string_view key, const Range& values, Bounds...) {
    std::vector<std::int64_t> numbers;
    for (const auto& value : values) numbers.push_back(ToInt(value));
    PutInts(key, numbers);
  }
  void Ascending(std::string_view key, const std::vector<int>& values, int) { Ints(key, values); }
  template <typename Range, typename List, typename... Blank>
  void Objects(std::string_view key, const Range& values, std::size_t, const List& fields_of,
               const Blank&...) {
    PutInts(key, {});
    for (const auto& value : values) {
      FieldWriter list(Append(key));
      fields_of(list, value);
    }
  }
  template <typename Value, typename List>
  void Object(std::string_view key, const Value& value, const List& fields_of) {
    if constexpr (requires { value.has_value(); }) {
      if (value) Object(key, *value, fields_of);
    } else {
      FieldWriter list(PutObject(key));
      fields_of(list, value);
    }
  }
  template <typename Rule>
  void Check(const Rule&) {}

 private:
  void Put(std::string_view key, std::int64_t value);
  void PutInts(std::string_view key, const std::vector<std::int64_t>& values);
  Json& PutObject(std::string_view key);
  // Appends an empty object to the list under `key` and returns it.
  Json& Append(std::string_view key);

  Json& object_;
};

class FieldReader {
 public:
  // `fields` must outlive the reader; it keeps the first error.
  explicit FieldReader(Fields& fields) : fields_(fields) {}

  template <typename Number>
  void Int(std::string_view key, Number& value, std::int64_t min, std::int64_t max,
           Need need = kRequired) {
    if (Reads(key, need)) value = FromInt<Number>(fields_.Int(key, min, max));
  }
  void Bool(std::string_view key, bool& value, Need need = kRequired) {
    if (Reads(key, need)) value = fields_.Bool(key);
  }
  // The writer omits an empty optional text when the reader would refuse it (`min_bytes` > 0).
  void String(std::string_view key, std::string& value, std::size_t min_bytes,
              std::size_t max_bytes, Need need = kRequired) {
    if (Reads(key, need)) value = fields_.String(key, min_bytes, max_bytes);
  }
  // Reads an enumerator by its name; `names` has the names of all values, in the order of the
  // values.
  template <typename Enum, typename Names>
  void Name(std::string_view key, Enum& value, const Names& names) {
    value = static_cast<Enum>(NameIndex(key, {names.begin(), names.end()}));
  }
  // Reads exactly 16 hex digits.
  void Hex(std::string_view key, std::uint64_t& value);

  // Reads a list of texts of at most `max_bytes` each. An absent list is empty, here and below.
  void Strings(std::string_view key, std::vector<std::string>& values, std::size_t max_count,
               std::size_t max_bytes);
  // Reads a list of numbers from `min` to `max`. A std::array needs exactly `max_count` of them.
  template <typename Range>
  void Ints(std::string_view key, Range& values, std::size_t max_count, std::int64_t min,
            std::int64_t max) {
    using Number = typename Range::value_type;
    constexpr bool kGrows = requires { values.clear(); };
    std::vector<Number> read;
    for (const std::int64_t number : ReadInts(key, kGrows ? 0 : max_count, max_count, min, max)) {
      read.push_back(FromInt<Number>(number));
    }
    if constexpr (kGrows) {
      values = std::move(read);
    } else {
      std::copy(read.begin(), read.end(), values.begin());
    }
  }
  // Reads whole numbers from 0 to `max` in ascending order.
  void Ascending(std::string_view key, std::vector<int>& values, int max);
  // Reads a list of objects, each into a copy of `blank`.
  template <typename Element, typename List>
  void Objects(std::string_view key, std::vector<Element>& values, std::size_t max_count,
               const List& fields_of, const Element& blank = Element()) {
    values.clear();
    ForEach(key, max_count, [&](Fields& item) {
      FieldReader list(item);
      fields_of(list, values.emplace_back(blank));
    });
  }
  // Reads an optional object into a std::optional, or over the value that the message has.
  template <typename Value, typename List>
  void Object(std::string_view key, Value& value, const List& fields_of) {
    IfThere(key, [&](Fields& object) {
      FieldReader list(object);
      if constexpr (requires { value.emplace(); }) {
        fields_of(list, value.emplace());
      } else {
        fields_of(list, value);
      }
    });
  }
  // Calls `rule(fields)`, which reports mistakes by fields.Fail, unless there was an error.
  template <typename Rule>
  void Check(const Rule& rule) {
    if (fields_.status().ok()) rule(fields_);
  }

 private:
  // Reads each object of a list and stops at the first error.
  void ForEach(std::string_view key, std::size_t max_count, absl::FunctionRef<void(Fields&)> read);
  void IfThere(std::string_view key, absl::FunctionRef<void(Fields&)> read);
  bool Reads(std::string_view key, Need need) { return need == kRequired || fields_.Has(key); }
  std::size_t NameIndex(std::string_view key, const std::vector<std::string_view>& names);
  std::vector<std::int64_t> ReadInts(std::string_view key, std::size_t min_count,
                                     std::size_t max_count, std::int64_t min, std::int64_t max);

  Fields& fields_;
};

// Bytes other than UTF-8 (in a file name, say) are replaced, so every message can be sent.
std::string WriteText(absl::FunctionRef<void(FieldWriter&)> write);
absl::Status ReadText(std::string_view text, std::string_view where,
                      absl::FunctionRef<void(FieldReader&)> read);

template <typename Message, typename List>
std::string WriteMessage(const Message& message, const List& fields_of) {
  return WriteText([&](FieldWriter& list) { fields_of(list, message); });
}

// `where` begins the messages of errors. `message` holds the defaults of the optional fields.
template <typename Message, typename List>
absl::StatusOr<Message> ReadMessage(std::string_view text, std::string_view where,
                                    const List& fields_of, Message message = Message()) {
  TAHOMA_RETURN_IF_ERROR(
      ReadText(text, where, [&](FieldReader& list) { fields_of(list, message); }));
  return message;
}

}  // namespace tahoma::wire
