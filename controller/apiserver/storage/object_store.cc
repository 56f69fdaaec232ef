#include "controller/apiserver/storage/object_store.h"

#include <charconv>
#include <initializer_list>
#include <optional>
#include <utility>

#include "controller/apiserver/merge/field_text.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/processor_budget.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"

namespace tahoma::controller::apiserver {
namespace {

using json = Json;

constexpr std::string_view kCoreGroup = "core";

std::string Joined(std::initializer_list<std::string_view> parts) {
  std::size_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  std::string text;
  text.reserve(size);
  for (const std::string_view part : parts) text += part;
  return text;
}

std::string StoreKey(const ResourceName& resource, std::string_view key) {
  const std::string_view group = resource.group.empty() ? kCoreGroup : resource.group;
  return Joined({ObjectStore::kObjectPrefix, group, "/", resource.plural, "/", key});
}

absl::StatusOr<std::int64_t> ParseVersion(std::string_view text) {
  std::int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size() || version < 0) {
    return DataLoss("'{}' is not a resource version", text);
  }
  return version;
}

// "o/<group>/<plural>/<namespace>/<name>" -> resource and "<namespace>/<name>".
std::optional<std::pair<ResourceName, std::string>> ParseStoreKey(std::string_view key) {
  key.remove_prefix(ObjectStore::kObjectPrefix.size());
  const std::size_t group_end = key.find('/');
  if (group_end == std::string_view::npos) return std::nullopt;
  const std::size_t plural_end = key.find('/', group_end + 1);
  if (plural_end == std::string_view::npos) return std::nullopt;
  ResourceName resource{std::string(key.substr(0, group_end)),
                        std::string(key.substr(group_end + 1, plural_end - group_end - 1))};
  if (resource.group == kCoreGroup) resource.group.clear();
  return std::pair(std::move(resource), std::string(key.substr(plural_end + 1)));
}

absl::StatusOr<ObjectPtr> ParseObject(std::string key, std::string_view bytes) {
  auto object = std::make_shared<Object>();
  auto body = std::make_shared<json>(TryParseJson(bytes));
  if (!body->is_object() || !body->contains("metadata")) return DataLoss("not an object");
  const json& metadata = body->at("metadata");
  const auto version = metadata.find("resourceVersion");
  if (version == metadata.end() || !version->is_string()) return DataLoss("no resourceVersion");
  TAHOMA_ASSIGN_OR_RETURN(object->version, ParseVersion(version->get_ref<const std::string&>()));
  object->key = std::move(key);
  object->bytes = bytes;
  CompactFields(*body);
  ShareJson(*body);
  object->body = std::move(body);
  return object;
}

// The text of an object, cut where its version belongs. The text is made before the version is
// known: nobody waits for the text in the order of versions. A thread makes one text at a time,
// always in the same memory, which is then in the processor's cache.
class CutText {
 public:
  explicit CutText(const json& body) : text_(Buffer()) {
    text_.clear();
    Open(body, [&](const std::string& name, const json& value) {
      if (name != "metadata") return Append(name, value);
      Append(name);
      Open(value, [&](const std::string& field, const json& content) {
        if (field != "resourceVersion") return Append(field, content);
        Append(field);
        text_ += '"';
        cut_ = text_.size();
        text_ += '"';
      });
    });
  }
  ~CutText() {
    constexpr std::size_t kKept = 64UL << 10U;
    if (text_.capacity() > kKept) text_ = std::string();
  }
  CutText(const CutText&) = delete;
  CutText& operator=(const CutText&) = delete;

  std::string With(std::string_view version) const {
    const std::string_view text = text_;
    return Joined({text.substr(0, cut_), version, text.substr(cut_)});
  }

 private:
  static std::string& Buffer() {
    thread_local std::string buffer;
    return buffer;
  }
  template <typename Each>
  void Open(const json& object, const Each& each) {
    text_ += '{';
    for (const auto& [name, value] : MembersOf(object)) each(name, value);
    text_ += '}';
  }
  void Append(const std::string& name) {
    if (text_.back() != '{') text_ += ',';
    kube::AppendJsonString(name, text_);
    text_ += ':';
  }
  void Append(const std::string& name, const json& value) {
    Append(name);
    kube::AppendJson(value, text_);
  }

  std::string& text_;
  std::size_t cut_ = 0;
};

// Checks that a published version still equals its text, whatever is done to values that share
// members with it. Too slow except for tests.
void CheckUntouched([[maybe_unused]] const ObjectPtr& object) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  TAHOMA_CHECK(object == nullptr || kube::JsonText(*object->body) == object->bytes);
#endif
}

}  // namespace

std::string ObjectKey(std::string_view name_space, std::string_view name) {
  return Joined({name_space, "/", name});
}

Edit Edit::Put(json body) { return {Kind::kPut, std::make_shared<json>(std::move(body))}; }
Edit Edit::Delete(json last_state) {
  return {Kind::kDelete, std::make_shared<json>(std::move(last_state))};
}

struct ObjectStore::Resource {
  // Events up to `floor` are forgotten.
  Resource(ResourceName name_in, const Options& options, std::int64_t floor)
      : name(std::move(name_in)), log(options.log_count_max, options.log_bytes_max) {
    log.SetFloor(floor);
  }

  const ResourceName name;
  Mutex mutex;
  CondVar changed;   // for Next
  CondVar released;  // for changes that wait for another change of the same object
  int waiting ABSL_GUARDED_BY(mutex) = 0;        // in `changed`
  bool has_news ABSL_GUARDED_BY(mutex) = false;  // news that waiters have not been told
  std::map<std::string, ObjectPtr, std::less<>> objects ABSL_GUARDED_BY(mutex);
  absl::flat_hash_set<std::string> busy ABSL_GUARDED_BY(mutex);
  EventLog log ABSL_GUARDED_BY(mutex);
};

// The right to change one object: no other change of the object begins before the lock is
// destroyed, also when a scope ends by an exception.
class ObjectStore::ChangeLock {
 public:
  // Waits for the object's change in progress; kUnavailable when the change does not end in time.
  static absl::StatusOr<std::unique_ptr<ChangeLock>> Begin(Resource& resource,
                                                           const std::string& key,
                                                           std::chrono::milliseconds wait) {
    const auto deadline = CondVar::In(wait);
    const MutexLock lock(resource.mutex);
    while (resource.busy.contains(key) && resource.released.WaitUntil(resource.mutex, deadline)) {
    }
    if (resource.busy.contains(key)) {
      return Unavailable("{} {} is being changed by a request that has not ended in {} ms",
                         resource.name.plural, key, wait.count());
    }
    std::unique_ptr<ChangeLock> change_lock(new ChangeLock(resource, key));
    resource.busy.insert(key);
    change_lock->taken_ = true;
    const auto found = resource.objects.find(key);
    if (found != resource.objects.end()) change_lock->current_ = found->second;
    return change_lock;
  }
  ~ChangeLock() {
    if (!taken_) return;
    {
      const MutexLock lock(resource_.mutex);
      resource_.busy.erase(key_);
    }
    resource_.released.NotifyAll();
  }
  ChangeLock(const ChangeLock&) = delete;
  ChangeLock& operator=(const ChangeLock&) = delete;

  Resource& resource() const { return resource_; }
  const std::string& key() const { return key_; }
  const ObjectPtr& current() const { return current_; }  // null when there is none

 private:
  ChangeLock(Resource& resource, std::string key) : resource_(resource), key_(std::move(key)) {}

  Resource& resource_;
  const std::string key_;
  ObjectPtr current_;
  bool taken_ = false;
};

ObjectStore::ObjectStore(Store& store, Options options) : store_(store), options_(options) {
  store_.SetAfterGroup([this] { Announce(); });
}
ObjectStore::~ObjectStore() { store_.SetAfterGroup(nullptr); }

absl::Status ObjectStore::RaiseVersion(Store& store) {
  // More than a year of 20,000 changes a second; a client's 53 bits hold 9,000 such steps.
  constexpr std::int64_t kStep = 1'000'000'000'000;
  const absl::StatusOr<std::string> stored = store.Get(Keyspace::kApi, kVersionKey);
  if (absl::IsNotFound(stored.status())) return absl::OkStatus();
  if (!stored.ok()) return stored.status();
  TAHOMA_ASSIGN_OR_RETURN(const std::int64_t version, ParseVersion(*stored));
  WriteBatch batch;
  batch.Put(Keyspace::kApi, std::string(kVersionKey), std::to_string(version + kStep));
  return store.Commit(std::move(batch));
}

absl::StatusOr<std::unique_ptr<ObjectStore>> ObjectStore::Open(Store& store, Options options) {
  std::unique_ptr<ObjectStore> objects(new ObjectStore(store, options));
  TAHOMA_RETURN_IF_ERROR(objects->Load());
  return objects;
}

absl::StatusOr<ObjectStore::Stored> ObjectStore::ReadStored(std::string_view key,
                                                            std::string_view value,
                                                            std::int64_t newest) {
  auto name = ParseStoreKey(key);
  auto object = name ? ParseObject(name->second, value)
                     : absl::StatusOr<ObjectPtr>(DataLoss("not an object's key"));
  if (object.ok() && (*object)->version > newest) {
    object = DataLoss("its version {} is above the newest, {}", (*object)->version, newest);
  }
  if (!object.ok())
    return Annotate(object.status(), fmt::format("the stored API object '{}'", key));
  return Stored{std::move(name->first), *std::move(object)};
}

absl::Status ObjectStore::Load() {
  const absl::StatusOr<std::string> stored = store_.Get(Keyspace::kApi, kVersionKey);
  if (!stored.ok() && !absl::IsNotFound(stored.status())) return stored.status();
  std::int64_t newest = 1;  // "0" means "any version" in requests
  if (stored.ok()) {
    TAHOMA_ASSIGN_OR_RETURN(newest, ParseVersion(*stored));
  }
  absl::Status result;
  TAHOMA_RETURN_IF_ERROR(store_.Scan(
      Keyspace::kApi, kObjectPrefix, "", [&](std::string_view key, std::string_view value) {
        const absl::StatusOr<Stored> stored_object = ReadStored(key, value, newest);
        result = stored_object.status();
        if (!stored_object.ok()) return false;
        Resource& resource = Of(stored_object->resource);
        const MutexLock lock(resource.mutex);
        resource.objects.emplace(stored_object->object->key, stored_object->object);
        return true;
      }));
  TAHOMA_RETURN_IF_ERROR(result);
  {
    const MutexLock order(order_mutex_);
    last_version_ = newest;
  }
  // Events before this start are gone: every older version is answered with 410.
  const MutexLock lock(resources_mutex_);
  loaded_version_ = newest;
  for (auto& [name, resource] : resources_) {
    const MutexLock resource_lock(resource->mutex);
    resource->log.SetFloor(newest);
  }
  visible_ = newest;
  return absl::OkStatus();
}

ObjectStore::Resource& ObjectStore::Of(const ResourceName& name) const {
  const MutexLock lock(resources_mutex_);
  std::unique_ptr<Resource>& resource = resources_[name];
  if (!resource) resource = std::make_unique<Resource>(name, options_, loaded_version_);
  return *resource;
}

ObjectPtr ObjectStore::Get(const ResourceName& name, std::string_view key) const {
  Resource& resource = Of(name);
  const MutexLock lock(resource.mutex);
  const auto found = resource.objects.find(key);
  return found == resource.objects.end() ? nullptr : found->second;
}

ObjectList ObjectStore::List(const ResourceName& name, std::string_view prefix) const {
  Resource& resource = Of(name);
  ObjectList list;
  const MutexLock lock(resource.mutex);
  list.version = visible_.load();
  for (auto at = resource.objects.lower_bound(prefix);
       at != resource.objects.end() && std::string_view(at->first).starts_with(prefix); ++at) {
    list.objects.push_back(at->second);
  }
  return list;
}

absl::StatusOr<ObjectList> ObjectStore::ListAt(const ResourceName& name, std::string_view prefix,
                                               std::int64_t version) const {
  Resource& resource = Of(name);
  const MutexLock lock(resource.mutex);
  if (version > visible_.load()) {
    return Unavailable("version {} is not reached, the newest is {}", version, visible_.load());
  }
  std::vector<EventPtr> later;
  if (!resource.log.After(version, SIZE_MAX, later)) {
    return OutOfRange("version {} is forgotten, the oldest is {}", version, resource.log.floor());
  }
  // The state then is the present state with the later changes undone; an object's first later
  // change knows its earlier state.
  std::map<std::string, ObjectPtr, std::less<>> undone;
  for (const EventPtr& event : later) {
    if (event->object->key.starts_with(prefix)) undone.emplace(event->object->key, event->previous);
  }
  ObjectList list;
  list.version = version;
  auto old = undone.begin();
  const auto take_old_before = [&](std::string_view key) {
    for (; old != undone.end() && old->first < key; ++old) {
      if (old->second) list.objects.push_back(old->second);
    }
  };
  for (auto at = resource.objects.lower_bound(prefix);
       at != resource.objects.end() && std::string_view(at->first).starts_with(prefix); ++at) {
    take_old_before(at->first);
    if (old != undone.end() && old->first == at->first) {
      if (old->second) list.objects.push_back(old->second);
      ++old;
    } else {
      list.objects.push_back(at->second);
    }
  }
  for (; old != undone.end(); ++old) {
    if (old->second) list.objects.push_back(old->second);
  }
  return list;
}

absl::StatusOr<ObjectPtr> ObjectStore::Change(const ResourceName& name, const std::string& key,
                                              const EditFunction& edit, CommitsInFlight* flight) {
  TAHOMA_ASSIGN_OR_RETURN(std::unique_ptr<ChangeLock> change_lock,
                          ChangeLock::Begin(Of(name), key, options_.change_wait));
  ObjectPtr current = change_lock->current();
  TAHOMA_ASSIGN_OR_RETURN(const Edit wish, edit(current));
  if (wish.kind == Edit::Kind::kNone) return current;
  TAHOMA_CHECK(wish.kind == Edit::Kind::kPut || current != nullptr);
  CommitsInFlight own;
  ObjectPtr object =
      Commit(std::move(change_lock), std::move(current), wish, flight != nullptr ? *flight : own);
  TAHOMA_RETURN_IF_ERROR(own.Land());
  return object;
}

// A commit that the store may have. In every case its end lets the next change of the object begin
// and answers the waiting flight.
struct ObjectStore::Underway {
  Underway(std::unique_ptr<ChangeLock> lock_in, CommitsInFlight& flight_in)
      : change_lock(std::move(lock_in)), flight(&flight_in) {
    flight->Start();
  }
  ~Underway() { End(Unavailable("the change was given up before it reached the store")); }
  Underway(const Underway&) = delete;
  Underway& operator=(const Underway&) = delete;

  // The flight may be gone afterwards.
  void End(const absl::Status& status) {
    change_lock.reset();
    if (flight != nullptr) std::exchange(flight, nullptr)->Answer(status);
  }

  std::unique_ptr<ChangeLock> change_lock;
  CommitsInFlight* flight;
};

ObjectPtr ObjectStore::Commit(std::unique_ptr<ChangeLock> change_lock, ObjectPtr current,
                              const Edit& edit, CommitsInFlight& flight) {
  ProcessorBudget::Lift();  // the change happens now, and its request must be told
  CheckUntouched(current);
  Resource& resource = change_lock->resource();
  auto object = std::make_shared<Object>();
  object->key = change_lock->key();
  object->body = edit.body;
  json& version = (*edit.body)["metadata"]["resourceVersion"];  // written before it is shown
  ShareJson(*edit.body);
  const CutText text(*edit.body);
  const std::string store_key = StoreKey(resource.name, object->key);
  auto underway = std::make_shared<Underway>(std::move(change_lock), flight);
  const MutexLock order(order_mutex_);
  object->version = ++last_version_;
  version = std::to_string(object->version);
  object->bytes = text.With(version.get_ref<const std::string&>());
  WriteBatch batch;
  batch.Put(Keyspace::kApi, std::string(kVersionKey), std::to_string(object->version));
  if (edit.kind == Edit::Kind::kPut) {
    batch.Put(Keyspace::kApi, store_key,
              std::shared_ptr<const std::string>(object, &object->bytes));
  } else {
    batch.Delete(Keyspace::kApi, store_key);
  }
  store_.CommitAsync(std::move(batch),
                     [this, &resource, kind = edit.kind, object, current = std::move(current),
                      underway = std::move(underway)](const absl::Status& status) {
                       if (status.ok()) Publish(resource, kind, object, current);
                       underway->End(status);
                     });
  return object;
}

void ObjectStore::Publish(Resource& resource, Edit::Kind kind, const ObjectPtr& object,
                          const ObjectPtr& previous) {
  const bool deleted = kind == Edit::Kind::kDelete;
  const Event::Type type = deleted               ? Event::Type::kDeleted
                           : previous == nullptr ? Event::Type::kAdded
                                                 : Event::Type::kModified;
  auto event = std::make_shared<const Event>(type, object, previous);
  const MutexLock lock(resource.mutex);
  if (deleted) {
    resource.objects.erase(object->key);
  } else {
    resource.objects[object->key] = object;
  }
  resource.log.Append(std::move(event));
  resource.has_news = true;
  visible_ = object->version;
}

void ObjectStore::Announce() {
  // A woken thread must find the lock free; otherwise it would sleep again at once.
  std::vector<Resource*> with_news;
  {
    const MutexLock lock(resources_mutex_);
    for (auto& [name, resource] : resources_) {
      const MutexLock resource_lock(resource->mutex);
      const bool news = std::exchange(resource->has_news, false);
      if (news && resource->waiting > 0) with_news.push_back(resource.get());
    }
  }
  for (Resource* resource : with_news) resource->changed.NotifyAll();
  { const MutexLock lock(announce_mutex_); }  // a later look sees the news, or waits
  announced_.NotifyAll();
}

void ObjectStore::WaitForChange(std::int64_t version, std::chrono::milliseconds wait) const {
  const auto deadline = CondVar::In(wait);
  const MutexLock lock(announce_mutex_);
  while (visible_.load() <= version && announced_.WaitUntil(announce_mutex_, deadline)) {
  }
}

absl::StatusOr<ObjectStore::Batch> ObjectStore::Next(const ResourceName& name, std::int64_t version,
                                                     std::size_t limit,
                                                     std::chrono::milliseconds wait) const {
  Resource& resource = Of(name);
  const MutexLock lock(resource.mutex);
  if (wait.count() > 0 && !resource.log.AnyAfter(version) && !stopping_) {
    ++resource.waiting;
    const auto deadline = CondVar::In(wait);
    while (!stopping_ && !resource.log.AnyAfter(version) &&
           resource.changed.WaitUntil(resource.mutex, deadline)) {
    }
    --resource.waiting;
  }
  Batch batch;
  batch.version = visible_.load();
  if (!resource.log.After(version, limit, batch.events)) {
    return OutOfRange("version {} is forgotten, the oldest is {}", version, resource.log.floor());
  }
  if (batch.events.size() == limit) batch.version = batch.events.back()->version();
  return batch;
}

void ObjectStore::StopWaiting() {
  stopping_ = true;
  const MutexLock lock(resources_mutex_);
  for (auto& [name, resource] : resources_) {
    const MutexLock resource_lock(resource->mutex);
    resource->changed.NotifyAll();
  }
}

}  // namespace tahoma::controller::apiserver
