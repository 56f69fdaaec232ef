// The webhooks' steps of a write (webhooks/webhooks.h), and changes that webhooks are asked about.
//
// The operation follows from the objects: without an object DELETE, without an old object CREATE.
// Requests that this server makes for itself at its start are not asked about.
//
// Thread safety: from any thread; a WriteRequest belongs to one.

#pragma once

#include <absl/status/statusor.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/request/api_request.h"
#include "controller/apiserver/storage/object_store.h"
#include "controller/apiserver/verbs/admission.h"
#include "controller/apiserver/webhooks/webhooks.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// Whether a webhook may be asked about one of these operations on the request's resource.
bool AsksWebhooks(const ApiContext& context, const ApiRequest& request,
                  std::initializer_list<std::string_view> operations);

// Returns the object as the mutating webhooks leave it. `shown` is the kind of the object where it
// is not the request's: a Scale, a Binding.
absl::StatusOr<Json> AskMutating(const ApiContext& context, WriteRequest& write, Json object,
                                 const Json& old_object, const Webhooks::Normalize& normalize,
                                 const GroupVersionKind* shown = nullptr);
absl::Status AskValidating(const ApiContext& context, WriteRequest& write, const Json& object,
                           const Json& old_object, const GroupVersionKind* shown = nullptr);

// Asks all webhooks about the deletion of the object.
absl::Status AskAboutDeletion(const ApiContext& context, const ApiRequest& request, bool dry_run,
                              const Json& old_object, Webhooks::Warnings& warnings);

// ObjectStore::Change, but where webhooks may be asked, `edit` runs before the object is locked,
// and again when the object has changed meanwhile; 409 after several times. `edit` must have no
// effects of its own.
absl::StatusOr<ObjectPtr> ChangeAdmitted(const ApiContext& context, const ApiRequest& request,
                                         const std::string& key,
                                         std::initializer_list<std::string_view> operations,
                                         const ObjectStore::EditFunction& edit);

}  // namespace tahoma::controller::apiserver
