// The steps of every write, from the client's body to the stored object.
//
// Thread safety: from any thread; a WriteRequest belongs to one.

#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/request/api_context.h"
#include "controller/apiserver/request/api_request.h"
#include "controller/apiserver/request/decode_body.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller::apiserver {

// One write in progress.
struct WriteRequest {
  const ApiRequest& request;
  bool dry_run = false;
  FieldValidation validation = FieldValidation::kWarn;
  std::string field_manager;
  std::string now;                    // RFC 3339
  bool apply = false;                 // server-side apply keeps managedFields itself
  std::vector<std::string> warnings;  // become Warning headers

  const Kind& kind() const { return *request.kind; }
  static absl::StatusOr<WriteRequest> Of(const ApiContext& context, const ApiRequest& request);
};

// Checks apiVersion and kind (filled in for built-in kinds that leave them out), types, and
// according to fieldValidation unknown fields (which are removed) and doubled ones.
// Errors of an object that a patch made blame the patch. Only `parts` of the object are looked at.
absl::Status CheckBody(WriteRequest& write, Json& object,
                       const std::vector<std::string>& duplicates, const Parts& parts = {});

// Name, namespace, uid, times, defaults, validation, ownership of fields.
absl::StatusOr<Json> AdmitCreate(const ApiContext& context, WriteRequest& write, Json object);

// Takes the fields that the server owns from `old_object`; versions and uids that do not agree are
// 409. Returns an object equal to `old_object` when nothing changes.
absl::StatusOr<Json> AdmitUpdate(const ApiContext& context, WriteRequest& write,
                                 const Json& old_object, Json object);

// 400 when the object's name is not the one of the URL.
absl::Status CheckNameOfUrl(const ApiRequest& request, const Json& metadata);

// 404 for a create in a namespace that is not there, 403 in one that is being deleted.
absl::Status CheckNamespace(const ApiContext& context, const ApiRequest& request,
                            std::string_view name);

// A deleted object whose last finalizer is gone leaves with this update.
bool DeletedByUpdate(const Kind& kind, const Json& object);

}  // namespace tahoma::controller::apiserver
