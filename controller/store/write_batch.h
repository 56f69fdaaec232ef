// The puts and deletes of one commit, in any keyspace: all of them are written or none.
//
//   WriteBatch batch;
//   batch.Put(Keyspace::kApi, "o/pods/default/web", bytes);
//   batch.Delete(Keyspace::kLedger, old_key);
//   TAHOMA_RETURN_IF_ERROR(store.Commit(std::move(batch)));
//
// Later operations win over earlier ones on the same key.
//
// Thread safety: a value; one thread at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tahoma::controller {

// docs/formats/store.md says which part of the program owns which keys.
enum class Keyspace : std::uint8_t { kMeta, kApi, kLedger };
inline constexpr std::size_t kKeyspaceCount = 3;

class WriteBatch {
 public:
  enum class Kind : std::uint8_t { kPut, kDelete, kDeleteRange };
  struct Operation {
    Kind kind;
    Keyspace keyspace;
    std::string key;
    std::string own;  // kDeleteRange: the end of the range, not included
    std::shared_ptr<const std::string> shared;

    std::string_view value() const { return shared ? *shared : own; }
  };

  void Put(Keyspace keyspace, std::string key, std::string value) {
    Add({Kind::kPut, keyspace, std::move(key), std::move(value), nullptr});
  }
  // The value is not copied.
  void Put(Keyspace keyspace, std::string key, std::shared_ptr<const std::string> value) {
    Add({Kind::kPut, keyspace, std::move(key), {}, std::move(value)});
  }
  void Delete(Keyspace keyspace, std::string key) {
    Add({Kind::kDelete, keyspace, std::move(key), {}, nullptr});
  }
  // Deletes every key in [from, to).
  void DeleteRange(Keyspace keyspace, std::string from, std::string to) {
    Add({Kind::kDeleteRange, keyspace, std::move(from), std::move(to), nullptr});
  }

  bool empty() const { return operations_.empty(); }
  std::size_t bytes() const { return bytes_; }
  const std::vector<Operation>& operations() const { return operations_; }

 private:
  void Add(Operation operation) {
    bytes_ += operation.key.size() + operation.value().size();
    operations_.push_back(std::move(operation));
  }

  std::vector<Operation> operations_;
  std::size_t bytes_ = 0;
};

}  // namespace tahoma::controller
