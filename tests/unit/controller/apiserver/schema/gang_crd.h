// The Gang kind, from a CRD that has what charts/tahoma/crds states, as JSON.

#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "controller/apiserver/schema/crd.h"
#include "lib/base/json.h"

namespace tahoma::controller::apiserver {

inline Json GangCrd() {
  return ParseJson(R"({
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "gangs.tahoma.dev"},
    "spec": {
      "group": "tahoma.dev", "scope": "Namespaced",
      "names": {"kind": "Gang", "listKind": "GangList", "plural": "gangs", "singular": "gang",
                "shortNames": ["gg"], "categories": ["all", "tahoma"]},
      "versions": [{
        "name": "v1alpha1", "served": true, "storage": true,
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.members",
                                                 "statusReplicasPath": ".status.boundMembers"}},
        "additionalPrinterColumns": [
          {"name": "Members", "type": "integer", "jsonPath": ".spec.members"},
          {"name": "Shape", "type": "string", "jsonPath": ".spec.shape"},
          {"name": "Queue", "type": "string", "jsonPath": ".spec.queue", "priority": 1},
          {"name": "Ready", "type": "string",
           "jsonPath": ".status.conditions[?(@.type==\"Bound\")].status"},
          {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
        "schema": {"openAPIV3Schema": {
          "description": "Gang is a set of pods that are placed together or not at all.",
          "type": "object", "required": ["spec"],
          "properties": {
            "spec": {"description": "What is wanted.", "type": "object", "required": ["members"],
              "properties": {
                "members": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 4096,
                            "description": "How many pods."},
                "shape": {"type": "string", "maxLength": 16,
                          "pattern": "^[0-9]{1,2}x[0-9]{1,2}(x[0-9]{1,2})?$"},
                "chips": {"type": "integer", "minimum": 1},
                "slices": {"type": "integer", "minimum": 1, "default": 1},
                "queue": {"type": "string", "default": "default"}}},
            "status": {"type": "object", "properties": {
              "boundMembers": {"type": "integer"},
              "conditions": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {"type": "object", "required": ["type", "status"], "properties": {
                  "type": {"type": "string"}, "status": {"type": "string"}}}}}}}}}}]}})");
}

inline std::shared_ptr<const Kind> GangKind() {
  auto kinds = KindsOfCrd(GangCrd());
  EXPECT_TRUE(kinds.ok()) << kinds.status().ToString();
  return kinds->front();
}

}  // namespace tahoma::controller::apiserver
