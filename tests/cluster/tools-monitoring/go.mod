module tahoma.dev/tests/cluster/tools-monitoring

go 1.26.0

// Only for its CustomResourceDefinitions, which are files of the module.
require github.com/prometheus-operator/prometheus-operator v0.85.0
