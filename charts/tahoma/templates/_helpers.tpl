{{/* Labels of an object: (dict "root" $ "part" "controller"). */}}
{{- define "tahoma.labels" -}}
{{ include "tahoma.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: tahoma
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "tahoma.selector" -}}
app.kubernetes.io/name: tahoma
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{/* An image's reference: (dict "root" $ "of" .Values.controller.image). */}}
{{- define "tahoma.image" -}}
{{- $tag := .of.tag | default .root.Chart.AppVersion -}}
{{- if .root.Values.image.registry -}}{{ trimSuffix "/" .root.Values.image.registry }}/{{ end -}}
{{ .of.repository }}:{{ $tag }}
{{- end }}

{{- define "tahoma.draPlugin.enabled" -}}
{{- if kindIs "invalid" .Values.draPlugin.enabled }}{{ if .Values.simNode.enabled }}true{{ end }}
{{- else if .Values.draPlugin.enabled }}true{{ end }}
{{- end }}

{{- define "tahoma.awsDriver.enabled" -}}
{{- if kindIs "invalid" .Values.awsDriver.enabled }}{{ if not (include "tahoma.draPlugin.enabled" .) }}true{{ end }}
{{- else if .Values.awsDriver.enabled }}true{{ end }}
{{- end }}

{{- define "tahoma.deviceClasses.neuron" -}}
{{- if kindIs "invalid" .Values.deviceClasses.neuron }}{{ if not (include "tahoma.awsDriver.enabled" .) }}true{{ end }}
{{- else if .Values.deviceClasses.neuron }}true{{ end }}
{{- end }}

{{/* The newest version of DeviceTaintRule that the server serves; empty: none. */}}
{{- define "tahoma.deviceTaintRule" -}}
{{- $served := .Capabilities.APIVersions -}}
{{- range list "resource.k8s.io/v1" "resource.k8s.io/v1beta2" "resource.k8s.io/v1alpha3" -}}
{{- if $served.Has (printf "%s/DeviceTaintRule" .) }}{{ . }} {{ end }}
{{- end }}
{{- end }}

{{/* Who the controller is to the API server. */}}
{{- define "tahoma.controller.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:tahoma-controller
{{- end }}

{{- define "tahoma.draPlugin.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:tahoma-dra-plugin
{{- end }}

{{/* The Secret with the admin API's certificate; empty: plain HTTP. */}}
{{- define "tahoma.controller.tls" -}}
{{- if not .Values.controller.admin.plainHttp }}{{ .Values.controller.admin.tlsSecret | default "tahoma-controller-tls" }}{{ end }}
{{- end }}

{{/* The names of the admin API, with commas between. */}}
{{- define "tahoma.controller.hosts" -}}
{{- $service := printf "tahoma-controller.%s.svc" .Release.Namespace -}}
{{- $hosts := list "tahoma-controller" (printf "tahoma-controller.%s" .Release.Namespace) $service (printf "%s.cluster.local" $service) -}}
{{- concat $hosts .Values.controller.admin.allowedHosts | uniq | join "," }}
{{- end }}

{{/* The parts of a pod's spec that all have. */}}
{{- define "tahoma.pod" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .of.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .of.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end }}

{{/* A container that can write to its volumes only. */}}
{{- define "tahoma.container.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* The user of the controller. */}}
{{- define "tahoma.user" -}}65532{{- end }}

{{/* Plain files of the chart (files/), with the chart's labels: (dict "root" $ "file" "files/x.yaml" "part" "y"); with
     "names" only documents of these names. */}}
{{- define "tahoma.plain" -}}
{{- $labels := include "tahoma.labels" . | fromYaml -}}
{{- range $document := splitList "\n---\n" (.root.Files.Get .file) }}
{{- $object := fromYaml $document }}
{{- if or (not $.names) (has $object.metadata.name $.names) }}
{{- $_ := set $object.metadata "labels" $labels }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}

{{/* The API server's address is not known here; names are resolved. */}}
{{- define "tahoma.egress" -}}
- ports:
  {{- range .Values.networkPolicy.apiServerPorts }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
- ports:
  - {protocol: UDP, port: 53}
  - {protocol: TCP, port: 53}
{{- end }}
