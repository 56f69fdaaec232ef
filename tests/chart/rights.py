"""What each program's account may do: the whole of it. A right that is new in the chart is new here, with its reason
beside the rule in the template.

    {(where, group, resource): verbs}, where "cluster" or a namespace; with names "resource=name"
"""

CONTROLLER = {
    ("cluster", "", "pods"): "get list watch delete",
    ("cluster", "", "pods/binding"): "create",
    ("cluster", "", "pods/eviction"): "create",
    ("cluster", "", "pods/status"): "patch",
    ("cluster", "", "nodes"): "get list watch patch",
    ("cluster", "", "persistentvolumes"): "get list watch",
    ("cluster", "", "persistentvolumeclaims"): "get list watch patch",
    ("cluster", "storage.k8s.io", "storageclasses"): "get list watch",
    ("cluster", "scheduling.k8s.io", "podgroups"): "list watch",
    ("cluster", "scheduling.x-k8s.io", "podgroups"): "list watch",
    ("cluster", "scheduling.volcano.sh", "podgroups"): "list watch",
    ("cluster", "scheduling.run.ai", "podgroups"): "list watch",
    ("cluster", "scheduling.k8s.io", "workloads"): "list watch",
    ("cluster", "scheduling.k8s.io", "priorityclasses"): "list watch",
    ("cluster", "neuron.aws.com", "neuronultraserverworkloads"): "list watch",
    ("cluster", "neuron.aws.com", "neuronultraserverworkloads/status"): "patch",
    ("cluster", "resource.k8s.io", "resourceclaimtemplates"): "list watch create",
    ("cluster", "", "events"): "create patch",
    ("cluster", "resource.k8s.io", "resourceslices"): "list watch",
    ("cluster", "resource.k8s.io", "deviceclasses"): "list watch",
    ("cluster", "resource.k8s.io", "resourceclaims"): "get list watch create patch",
    ("cluster", "resource.k8s.io", "resourceclaims/status"): "update patch",
    ("cluster", "resource.k8s.io", "resourceclaims/binding"): "update patch",
    ("cluster", "resource.k8s.io", "resourceclaims/driver=neuron.aws.com"): "arbitrary-node:patch",
    ("cluster", "tahoma.dev", "gangs"): "get list watch create patch delete",
    ("cluster", "tahoma.dev", "gangs/status"): "patch",
    ("cluster", "tahoma.dev", "capacityblocks"): "get list watch create patch",
    ("cluster", "tahoma.dev", "capacityblocks/status"): "patch",
    ("cluster", "tahoma.dev", "capacityblockextensions"): "list watch",
    ("cluster", "tahoma.dev", "capacityblockextensions/status"): "patch",
    ("cluster", "tahoma.dev", "capacityblockquotas"): "list watch",
    ("cluster", "tahoma.dev", "capacityblockquotas/status"): "patch",
    ("cluster", "tahoma.dev", "capacityblockseries"): "list watch",
    ("cluster", "tahoma.dev", "capacityblockseries/status"): "patch",
    ("cluster", "tahoma.dev", "capacityblockwaitlistentries"): "list watch",
    ("cluster", "tahoma.dev", "capacityblockwaitlistentries/status"): "patch",
    ("cluster", "tahoma.dev", "queues"): "list watch",
    ("cluster", "tahoma.dev", "queues/status"): "patch",
    ("cluster", "tahoma.dev", "capacityreservations"): "list watch create patch delete",
    ("cluster", "tahoma.dev", "ultraservers"): "list watch create patch delete",
    ("cluster", "authentication.k8s.io", "tokenreviews"): "create",
    ("cluster", "authorization.k8s.io", "subjectaccessreviews"): "create",
    ("tahoma-system", "coordination.k8s.io", "leases=tahoma-controller"): "get update",
    ("tahoma-system", "coordination.k8s.io", "leases"): "create",
    ("tahoma-system", "neuron.aws.com", "neuronultraservers"): "list watch create patch delete",
    ("tahoma-system", "neuron.aws.com", "neuronultraservers/status"): "patch",
    ("tahoma-system", "", "pods=tahoma-controller-0"): "patch",
    ("tahoma-system", "", "pods=tahoma-controller-1"): "patch",
    ("kube-system", "", "configmaps=tahoma-topology"): "patch",
}

DRA_PLUGIN = {
    ("cluster", "resource.k8s.io", "resourceslices"): "get list create update delete",
    ("cluster", "resource.k8s.io", "resourceclaims"): "get",
    ("cluster", "resource.k8s.io", "resourceclaims/status"): "patch",
    ("cluster", "resource.k8s.io", "resourceclaims/driver=neuron.aws.com"): "associated-node:patch",
    ("cluster", "", "events"): "create",
    ("cluster", "", "nodes"): "get patch",
    ("cluster", "", "nodes/status"): "patch",
}

SIM_NODE = {}
