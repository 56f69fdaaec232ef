// Package allocator pins the release of Kubernetes whose allocator's tests judge ours: see
// tests/cluster/allocator_cases.sh.
package allocator

import _ "k8s.io/dynamic-resource-allocation/structured"
