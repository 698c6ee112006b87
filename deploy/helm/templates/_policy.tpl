{{/*
The signers and lookups of the policy, as JSON: what src/app/controller/policy-rights.ts returns. A test compares both.
*/}}
{{- define "kcert.policy" -}}
{{- $rules := list -}}
{{- if .Values.policy -}}
{{- $policy := fromYaml .Values.policy -}}
{{- if or (ne (toString $policy.kind) "ApprovalPolicy") (not (kindIs "slice" $policy.rules)) -}}
{{- fail (printf "policy is not the text of an ApprovalPolicy (docs/policy.md): use --set-file policy=policy.yaml. %s" ($policy.Error | default "")) -}}
{{- end -}}
{{- $rules = $policy.rules -}}
{{- else -}}
{{- range (eq .Values.approve "builtin") | ternary "kubelet-client,kubelet-serving" .Values.approve | splitList "," -}}
{{- $rules = append $rules (dict "builtin" .) -}}
{{- end -}}
{{- end -}}
{{- $signers := list -}}
{{- $lookups := list -}}
{{- range $rules -}}
{{- $builtin := .builtin | default "" -}}
{{- if eq $builtin "kubelet-client" -}}
{{- $signers = append $signers "kubernetes.io/kube-apiserver-client-kubelet" -}}
{{- $lookups = append $lookups "access" -}}
{{- if .newNodesOnly -}}{{- $lookups = append $lookups "nodes" -}}{{- end -}}
{{- else if eq $builtin "kubelet-serving" -}}
{{- $signers = append $signers "kubernetes.io/kubelet-serving" -}}
{{- $lookups = concat $lookups (list "nodes" "cluster-addresses") -}}
{{- if ne (.names | default "") "node" -}}{{- $lookups = append $lookups "served-certificates" -}}{{- end -}}
{{- else if eq (.decision | default "") "approve" -}}
{{- range .signerNames -}}
{{- if contains "{" . -}}
{{- else if not (contains "*" .) -}}
{{- $signers = append $signers . -}}
{{- else if regexMatch "^[^*/]*/" . -}}
{{- $signers = append $signers (printf "%s/*" (splitList "/" . | first)) -}}
{{- else if contains "/" . -}}
{{- $signers = append $signers "*" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- dict "signers" ($signers | uniq | sortAlpha) "lookups" ($lookups | uniq) | toJson -}}
{{- end -}}
