// The parameters of a request in EC2's Query protocol: a form, read by name.
//
// A reader remembers the first mistake and goes on with "nothing", so that who reads need not look
// at each value. Finish tells it, or the first parameter that nobody asked for together with all
// names that were asked for: those are the ones that are legal.
//
// Scope: form and bounds; the meaning of values is the caller's.
//
// Thread safety: Parameters are const once parsed; one thread per Reader.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/ec2/error.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"

namespace tahoma::controller::ec2 {

class Parameters {
 public:
  static constexpr std::size_t kFormBytesMost = 256 << 10;
  static constexpr std::size_t kParametersMost = 2000;
  static constexpr std::size_t kNameBytesMost = 255;
  static constexpr std::size_t kValueBytesMost = 4096;

  using Map = std::map<std::string, std::string, std::less<>>;

  // Reads application/x-www-form-urlencoded text, of a body or a query. MalformedQueryString for
  // what is none, or too large, or names something twice.
  static absl::StatusOr<Parameters> Parse(std::string_view form);

  const Map& values() const { return values_; }
  // A digest of all but those, under which two requests ask for the same.
  Sha256Digest DigestWithout(std::initializer_list<std::string_view> names) const;

 private:
  Map values_;
};

class Reader {
 public:
  // `parameters` must outlive it.
  explicit Reader(const Parameters& parameters);

  // The value; nothing when it is not given. An empty one is a mistake.
  std::optional<std::string> Text(std::string_view name);
  // Also an empty one.
  std::optional<std::string> AnyText(std::string_view name);
  // A mistake when it is not given; then "".
  std::string Required(std::string_view name);
  std::optional<std::int64_t> Number(std::string_view name, std::int64_t least, std::int64_t most);
  std::int64_t RequiredNumber(std::string_view name, std::int64_t least, std::int64_t most);
  // "true" or "false", in any case.
  std::optional<bool> Flag(std::string_view name);
  // RFC 3339 in UTC.
  std::optional<WallTime> Time(std::string_view name);
  // NAME.1, NAME.2 …, in the order of their numbers, which may leave some out.
  std::vector<std::string> Texts(std::string_view name, std::size_t most,
                                 bool may_be_empty = false);
  // The same for lists of structures: `read` makes an item, and does nothing else. When there is no
  // item it is called once with a reader that gives nothing and notes no mistakes, and its result
  // is dropped: so the names of an item's members are known to be legal.
  template <typename T, typename Read>
  std::vector<T> Items(std::string_view name, std::size_t most, const Read& read) {
    std::vector<T> items;
    for (Reader& item : ReadersOf(name, most)) {
      T read_item = read(item);
      if (!item.probing_) items.push_back(std::move(read_item));
    }
    return items;
  }

  bool Has(std::string_view name) const;
  // The name as the request has it: "Filter.2.Name".
  std::string FullName(std::string_view name) const { return prefix_ + std::string(name); }
  // Notes a mistake; only the first counts.
  void Fail(absl::Status mistake);
  // Whether no mistake has been noted.
  bool ok() const;
  // UnknownParameter, the first mistake, or OK.
  absl::Status Finish() const;

 private:
  struct State;
  Reader(std::shared_ptr<State> state, std::string prefix, std::string pattern, bool probing)
      : state_(std::move(state)),
        prefix_(std::move(prefix)),
        pattern_(std::move(pattern)),
        probing_(probing) {}

  std::vector<Reader> ReadersOf(std::string_view name, std::size_t most);
  std::vector<int> IndexesOf(std::string_view name, std::size_t most);
  void Wrong(std::string_view name, std::string_view value, const std::string& legal);

  std::shared_ptr<State> state_;  // shared with the readers of items
  std::string prefix_;            // "Filter.2."
  std::string pattern_;           // "Filter.N."
  bool probing_ = false;
};

}  // namespace tahoma::controller::ec2
