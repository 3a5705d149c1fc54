{{- define "shoal.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "shoal.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "shoal.labels" -}}
{{ include "shoal.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "shoal.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end -}}

{{/* The gossip addresses of the voters. */}}
{{- define "shoal.join" -}}
{{- $name := include "shoal.name" . -}}
{{- $peers := list -}}
{{- range $i := until (int .Values.controlPlane.replicas) -}}
{{- $peers = append $peers (printf "%s-controlplane-%d.%s-controlplane.%s.svc:7401" $name $i $name $.Release.Namespace) -}}
{{- end -}}
{{- join "," $peers -}}
{{- end -}}

{{/* The password of a service, when a Secret is named. Takes the service's name and the Secret. */}}
{{- define "shoal.password" -}}
{{- if (last .).name }}
- name: SHOAL_{{ first . }}_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ (last .).name }}, key: {{ (last .).key }}}}
{{- end }}
{{- end -}}

{{/* The services whose authorities a role's pods are given. Takes the role. */}}
{{- define "shoal.authorities" -}}
kafka clickhouse redis blobs{{ if eq . "apiserver" }} oidc smtp{{ end }}
{{- end -}}

{{/* Public addresses, as peers of a network policy. Takes root. */}}
{{- define "shoal.public" -}}
- ipBlock:
    cidr: 0.0.0.0/0
    except:
      {{- toYaml .Values.networkPolicy.denied4 | nindent 6 }}
- ipBlock:
    cidr: ::/0
    except:
      {{- toYaml .Values.networkPolicy.denied6 | nindent 6 }}
{{- end -}}

{{/* A variable for each flag of `shoal serve` that all roles share. Takes root, role and values (of the role). */}}
{{- define "shoal.environment" -}}
{{- $v := .root.Values -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: GOMEMLIMIT
  valueFrom: {resourceFieldRef: {containerName: shoal, resource: requests.memory}}
- name: SHOAL_IDENTITY
  value: /identity/node.pem
- name: SHOAL_JOIN
  value: {{ include "shoal.join" .root | quote }}
- name: SHOAL_ADVERTISE
  value: $(POD_NAME).{{ include "shoal.name" .root }}-{{ .role }}.{{ .root.Release.Namespace }}.svc
- name: SHOAL_KAFKA_BROKERS
  value: {{ required "kafka.brokers" (join "," $v.kafka.brokers) | quote }}
- name: SHOAL_KAFKA_PREFIX
  value: {{ $v.kafka.prefix | quote }}
- name: SHOAL_KAFKA_REPLICAS
  value: {{ $v.kafka.replicas | quote }}
{{- if $v.kafka.tls }}
- name: SHOAL_KAFKA_TLS
  value: "true"
{{- end }}
{{- if $v.kafka.certSecret }}
- name: SHOAL_KAFKA_CERT_FILE
  value: /services/kafka-cert/tls.crt
- name: SHOAL_KAFKA_KEY_FILE
  value: /services/kafka-cert/tls.key
{{- end }}
{{- $own := .values.credentials | default dict -}}
{{- with merge (deepCopy ($own.kafka | default dict)) $v.kafka.sasl }}
{{- if .mechanism }}
- name: SHOAL_KAFKA_SASL
  value: {{ .mechanism }}
- name: SHOAL_KAFKA_USER
  value: {{ .user | quote }}
{{- include "shoal.password" (list "KAFKA" .passwordSecret) }}
{{- end }}
{{- end }}
- name: SHOAL_CLICKHOUSE_URL
  {{- if $v.clickhouse.url }}
  value: {{ $v.clickhouse.url | quote }}
  {{- else }}
  valueFrom: {secretKeyRef: {name: {{ $v.clickhouse.urlSecret.name }}, key: {{ $v.clickhouse.urlSecret.key }}}}
  {{- end }}
{{- with merge (deepCopy ($own.clickhouse | default dict)) (pick $v.clickhouse "user" "passwordSecret") }}
{{- with .user }}
- name: SHOAL_CLICKHOUSE_USER
  value: {{ . | quote }}
{{- end }}
{{- include "shoal.password" (list "CLICKHOUSE" .passwordSecret) }}
{{- end }}
{{- with $v.redis }}
{{- if .addr }}
- name: SHOAL_REDIS_ADDR
  value: {{ .addr | quote }}
- name: SHOAL_REDIS_PREFIX
  value: {{ .prefix | quote }}
{{- with .user }}
- name: SHOAL_REDIS_USER
  value: {{ . | quote }}
{{- end }}
{{- include "shoal.password" (list "REDIS" .passwordSecret) }}
{{- end }}
{{- end }}
{{- if has .role (list "controlplane" "apiserver" "ingest" "fetcher") }}
{{- with $v.blobs }}
{{- if .place }}
- name: SHOAL_BLOBS
  value: {{ .place | quote }}
- name: SHOAL_BACKUP_EVERY
  value: {{ .backupEvery | quote }}
- name: SHOAL_BACKUP_KEEP
  value: {{ .backupKeep | quote }}
{{- with .user }}
- name: SHOAL_BLOBS_USER
  value: {{ . | quote }}
{{- end }}
{{- include "shoal.password" (list "BLOBS" .passwordSecret) }}
{{- with .caSecret.name }}
- name: SHOAL_BLOBS_CA_FILE
  value: /services/blobs-ca/ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $service := list "kafka" "clickhouse" "redis" }}
{{- with (index $v $service).caSecret.name }}
- name: SHOAL_{{ upper $service }}_CA_FILE
  value: /services/{{ $service }}-ca/ca.crt
{{- end }}
{{- end }}
{{- with $v.tracing.endpoint }}
- name: SHOAL_TRACE_ENDPOINT
  value: {{ . | quote }}
- name: SHOAL_TRACE_RATIO
  value: {{ $v.tracing.ratio | quote }}
{{- end }}
{{- end -}}

{{/* What the API servers and fetchers are told of politeness. */}}
{{- define "shoal.politeness" -}}
- name: SHOAL_HOST_RATE
  value: {{ .Values.fetcher.hostRate | quote }}
- name: SHOAL_HOST_CONNECTIONS
  value: {{ .Values.fetcher.hostConnections | quote }}
- name: SHOAL_MAX_HOST_RATE
  value: {{ .Values.fetcher.maxHostRate | quote }}
- name: SHOAL_MAX_HOST_CONNECTIONS
  value: {{ .Values.fetcher.maxHostConnections | quote }}
{{- with .Values.fetcher.egressAllow }}
- name: SHOAL_EGRESS_ALLOW
  value: {{ join "," . | quote }}
{{- end }}
{{- end -}}

{{/*
The workload of a role. Takes root, role, values (of the role), environment (more variables), keeps (whether its data
must outlive the pod) and fixed (whether something else sets the number of pods).
*/}}
{{- define "shoal.workload" -}}
{{- $_ := set . "browser" (ternary .values.chromium dict (dig "chromium" "enabled" false .values)) -}}
{{- $name := printf "%s-%s" (include "shoal.name" .root) .role -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "shoal.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
spec:
  serviceName: {{ $name }}
  {{- if not .scaled }}
  replicas: {{ .values.replicas }}
  {{- end }}
  podManagementPolicy: Parallel
  # Behind every pod there can be: none is replaced.
  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: {{ ternary 1000000 0 (has .role (.root.Values.hold | default list)) }}}}
  selector:
    matchLabels:
      {{- include "shoal.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .role }}
  template:
    metadata:
      labels:
        {{- include "shoal.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .role }}
        {{- with .root.Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .root.Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
      {{- with .root.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: {{ ternary (dict "type" "RuntimeDefault") .browser.seccompProfile (not .browser) | toJson }}
      affinity:
        podAntiAffinity:
          {{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" (merge
              (dict "app.kubernetes.io/component" .role) (include "shoal.selector" .root | fromYaml))) }}
          {{- if .keeps }}
          requiredDuringSchedulingIgnoredDuringExecution:
            - {{- toYaml $term | nindent 14 }}
          {{- else }}
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                {{- toYaml $term | nindent 16 }}
          {{- end }}
      {{- with .values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: shoal
          {{- $browser := "" }}
          {{- with .browser }}
          {{- $browser = printf "%s:%s%s" .repository ($.root.Values.image.tag | default $.root.Chart.AppVersion)
                (ternary (printf "@%s" .digest) "" (ne (.digest | default "") "")) }}
          {{- end }}
          image: {{ $browser | default (include "shoal.image" .root) }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: {{ .args | default (list "serve") | toJson }}
          env:
            {{- include "shoal.environment" . | nindent 12 }}
            {{- with .environment }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with .values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            - {name: cluster, containerPort: 7400}
            - {name: gossip, containerPort: 7401}
            - {name: gossip-udp, containerPort: 7401, protocol: UDP}
            - {name: ops, containerPort: 9100}
            {{- if eq .role "apiserver" }}
            - {name: http, containerPort: 8080}
            - {name: admin, containerPort: 8081}
            {{- end }}
          # The first copy of the state may take a while.
          startupProbe:
            httpGet: {path: /api/livez, port: ops}
            periodSeconds: 2
            failureThreshold: 150
          livenessProbe:
            httpGet: {path: /api/livez, port: ops}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /api/readyz, port: ops}
            periodSeconds: 3
            timeoutSeconds: 3
            failureThreshold: 2
          # There is no preStop hook: SIGTERM itself makes a node hand over what it has, within the grace period above.
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: data, mountPath: /data}
            - {name: tmp, mountPath: /tmp}
            # Each pod sees its own identity alone. A renewed one is read at the next start.
            - {name: identities, mountPath: /identity/node.pem, subPathExpr: $(POD_NAME).pem, readOnly: true}
            {{- if .keeps }}
            - {name: first, mountPath: /config/node.conf, subPathExpr: $(POD_NAME).conf, readOnly: true}
            {{- end }}
            {{- range $service := splitList " " (include "shoal.authorities" .role) }}
            {{- if (index $.root.Values $service).caSecret.name }}
            - {name: {{ $service }}-ca, mountPath: /services/{{ $service }}-ca, readOnly: true}
            {{- end }}
            {{- end }}
            {{- if .root.Values.kafka.certSecret }}
            - {name: kafka-cert, mountPath: /services/kafka-cert, readOnly: true}
            {{- end }}
            {{- if (dig "proxiesSecret" "name" "" .values) }}
            - {name: proxies, mountPath: /services/proxies, readOnly: true}
            {{- end }}
            {{- if and (eq .role "apiserver") .root.Values.stripe.returnUrl }}
            - {name: stripe, mountPath: /services/stripe, readOnly: true}
            {{- end }}
            {{- if and (eq .role "apiserver") .root.Values.oidc.issuer .root.Values.oidc.clientSecret.name }}
            - {name: oidc-client, mountPath: /services/oidc-client, readOnly: true}
            {{- end }}
      volumes:
        - name: identities
          secret: {secretName: {{ .root.Values.identities.secret }}, defaultMode: 0440}
        - name: tmp
          emptyDir: {sizeLimit: {{ ternary "256Mi" "1Gi" (not .browser) }}}
        {{- with (dig "proxiesSecret" "name" "" .values) }}
        - name: proxies
          secret: {secretName: {{ . }}, items: [{key: {{ $.values.proxiesSecret.key }}, path: proxies}], defaultMode: 0440}
        {{- end }}
        {{- range $service := splitList " " (include "shoal.authorities" .role) }}
        {{- with (index $.root.Values $service).caSecret }}
        {{- if .name }}
        - name: {{ $service }}-ca
          secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}], defaultMode: 0440}
        {{- end }}
        {{- end }}
        {{- end }}
        {{- with .root.Values.stripe }}
        {{- if and (eq $.role "apiserver") .returnUrl }}
        - name: stripe
          projected:
            defaultMode: 0440
            sources:
              - secret: {name: {{ .keySecret.name }}, items: [{key: {{ .keySecret.key }}, path: key}]}
              - secret: {name: {{ .webhookSecret.name }}, items: [{key: {{ .webhookSecret.key }}, path: webhook}]}
        {{- end }}
        {{- end }}
        {{- with .root.Values.oidc }}
        {{- if and (eq $.role "apiserver") .issuer .clientSecret.name }}
        - name: oidc-client
          secret: {secretName: {{ .clientSecret.name }}, items: [{key: {{ .clientSecret.key }}, path: secret}], defaultMode: 0440}
        {{- end }}
        {{- end }}
        {{- with .root.Values.kafka.certSecret }}
        - name: kafka-cert
          secret: {secretName: {{ . }}, defaultMode: 0440}
        {{- end }}
        {{- if .keeps }}
        - name: first
          configMap: {name: {{ $name }}}
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .values.storage.className }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests: {storage: {{ .values.storage.size }}}
        {{- else }}
        # A copy of the state, which a new pod gets from the voters; of API servers also bodies that are being received.
        - name: data
          emptyDir: {sizeLimit: {{ ternary "28Gi" "10Gi" (eq .role "apiserver") }}}
        {{- end }}
---
# Gives each pod the name by which the others reach it, ready or not.
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "shoal.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
    shoal.dev/metrics: "true"
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {{- include "shoal.selector" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
  ports:
    - {name: cluster, port: 7400, targetPort: cluster}
    - {name: gossip, port: 7401, targetPort: gossip}
    - {name: gossip-udp, port: 7401, targetPort: gossip-udp, protocol: UDP}
    - {name: ops, port: 9100, targetPort: ops}
{{- if .root.Values.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "shoal.labels" .root | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: {{ ternary "IfHealthyBudget" "AlwaysAllow" (default false .keeps) }}
  selector:
    matchLabels:
      {{- include "shoal.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .role }}
{{- end }}
{{- end -}}
