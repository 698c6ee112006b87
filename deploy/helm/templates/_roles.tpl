{{/*
A ClusterRole with the rules `cluster`, a Role in each of `namespaces`, and their bindings to the service account.
*/}}
{{- define "kcert.roles" -}}
{{- range $namespace, $rules := merge (dict "" .cluster) .namespaces }}
{{- $kind := empty $namespace | ternary "ClusterRole" "Role" }}
{{- range $suffix := list "" "Binding" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}{{ $suffix }}
metadata:
  name: {{ $.name }}
{{- if $namespace }}
  namespace: {{ $namespace | quote }}
{{- end }}
{{- if $suffix }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $.name }}
subjects:
- kind: ServiceAccount
  name: kcert-controller
  namespace: {{ $.release.Namespace | quote }}
{{- else }}
rules:
{{ toYaml $rules | indent 2 }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
