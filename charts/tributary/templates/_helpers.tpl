{{- define "tributary.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tributary.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tributary.labels" -}}
{{ include "tributary.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "tributary.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "tributary.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- /* What tributary.yaml says. A pod is replaced when it changes: its digest is an annotation. */ -}}
{{- define "tributary.config" -}}
sources:
  {{- if not .Values.sources }}{{ fail "sources: name at least one" }}{{ end }}
  {{- toYaml .Values.sources | nindent 2 }}
{{- with .Values.sinks }}
sinks:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.alerts }}
alerts:
  {{- toYaml . | nindent 2 }}
{{- end }}
state: { url: "${DATABASE_URL}" }
queue: { url: "${REDIS_URL:-}" }
http:
  host: 0.0.0.0
  port: 7070
  token: ${TRIBUTARY_TOKEN}
  {{- with .Values.tokens }}
  tokens:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "tributary.image" -}}
{{- with .Values.image -}}
{{- if eq .tag "latest" }}{{ fail "image.tag must be a version, not latest: pods that start on different days would run different programs" }}{{ end -}}
{{- if .digest -}}
{{ .repository }}@{{ required "image.digest must look like sha256:…" (regexFind "^sha256:[0-9a-f]{64}$" .digest) }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}
