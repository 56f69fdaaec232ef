#include "lib/kube/resource.h"

#include "lib/kube/url.h"

namespace tahoma::kube {

std::string Resource::CollectionPath(std::string_view ns) const {
  std::string path = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  if (namespaced && !ns.empty()) path += "/namespaces/" + PercentEncode(ns);
  return path + "/" + plural;
}

std::string Resource::ObjectPath(const ObjectKey& key, std::string_view subresource) const {
  std::string path = CollectionPath(key.ns) + "/" + PercentEncode(key.name);
  if (!subresource.empty()) path += "/" + std::string(subresource);
  return path;
}

}  // namespace tahoma::kube
