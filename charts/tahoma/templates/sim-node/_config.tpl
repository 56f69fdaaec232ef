{{/* The given ones of the nodes that are emulated. DaemonSets take a node by its name only. */}}
{{- define "tahoma.simNode.affinity" -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
    {{- range . }}
    - matchFields: [{key: metadata.name, operator: In, values: [{{ .node | quote }}]}]
    {{- end }}
{{- end }}

{{- define "tahoma.simNode.domain" -}}
{{- if .ultraServer }}us/{{ .ultraServer.id }}{{ else }}node/{{ .node }}{{ end }}
{{- end }}

{{/* The Secret of one node's certificate: (dict "root" $ "node" NODE). */}}
{{- define "tahoma.simNode.secret" -}}
{{- $tls := .root.Values.simNode.peerTls -}}
{{- if eq $tls.mode "secret" }}{{ $tls.secret }}{{ else }}tahoma-sim-node-peer{{ end }}-{{ .node.node }}
{{- end }}

{{/* The configuration of one node: (dict "root" $ "node" NODE). */}}
{{- define "tahoma.simNode.config" -}}
{{- $s := .root.Values.simNode -}}
{{- $node := .node -}}
{{- $domain := include "tahoma.simNode.domain" $node -}}
{{- $config := dict
  "apiVersion" "tahoma.dev/v1alpha1"
  "kind" "SimNodeConfig"
  "nodeName" $node.node
  "nodeSocket" (printf "%s/node/node.sock" $s.hostDir)
  "workloadSocket" (printf "%s/workload/workload.sock" $s.hostDir)
  "adminAddress" (printf "127.0.0.1:%v" $s.adminPort)
  "stateDir" "/var/lib/tahoma/sim-node"
  "logFormat" $s.logFormat
  "logLevel" $s.logLevel -}}
{{- range $key := list "instanceType" "networkLayers" "capacityBlockId" -}}
{{- if hasKey $node $key }}{{ $_ := set $config $key (get $node $key) }}{{ end -}}
{{- end -}}
{{- if $s.adminTokenSecret }}{{ $_ := set $config "adminTokenFile" "/etc/tahoma/admin/token" }}{{ end -}}
{{- $peers := list -}}
{{- $outside := list -}}
{{- range $s.nodes -}}
{{- $host := .address | default .node -}}
{{- if ne (include "tahoma.simNode.domain" .) $domain -}}
{{- $outside = append $outside (dict "nodeName" .node "address" (printf "%s:%v" $host $s.efa.port)) -}}
{{- else if ne .node $node.node -}}
{{- $peers = append $peers (dict "nodeId" .ultraServer.nodeId "nodeName" .node "address" (printf "%s:%v" $host $s.linkPort)) -}}
{{- end -}}
{{- end -}}
{{- if $node.ultraServer -}}
{{- $_ := set $config "ultraServer" (dict "id" $node.ultraServer.id "nodeId" $node.ultraServer.nodeId "peers" $peers) -}}
{{- $_ := set $config "linkAddress" (printf "0.0.0.0:%v" $s.linkPort) -}}
{{- end -}}
{{- if and $s.efa.enabled $outside -}}
{{- $_ := set $config "efa" (dict "address" (printf "0.0.0.0:%v" $s.efa.port) "peers" $outside) -}}
{{- end -}}
{{- if eq $s.peerTls.mode "insecure" -}}
{{- $_ := set $config "peerTls" (dict "insecure" true) -}}
{{- else -}}
{{- $_ := set $config "peerTls" (dict "certFile" "/etc/tahoma/peers/tls.crt" "keyFile" "/etc/tahoma/peers/tls.key" "caFile" "/etc/tahoma/peers/ca.crt") -}}
{{- end -}}
{{- merge $config $s.config | toYaml }}
{{- end }}
