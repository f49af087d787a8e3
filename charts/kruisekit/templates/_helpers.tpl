{{/* kruisekit.gate: whether a feature gate is on, as the programs read featureGates: later values win, AllAlpha and AllBeta are
groups. The argument is (list root gate). */}}
{{- define "kruisekit.gate" -}}
{{- $name := index . 1 -}}
{{- $alpha := list "DeletionProtectionForCRDCascadingGate" "EnableExternalCerts" "ImagePullJobGate" "PreDownloadImageForDaemonSetUpdate" "PreDownloadImageForInPlaceUpdate" "StatefulSetAutoResizePVCGate" -}}
{{- $on := list "KruiseDaemon" "PodWebhook" -}}
{{- $beta := concat $on (list "ResourceDistributionGate" "ResourcesDeletionProtection") -}}
{{- if (index . 0).Values.nativeRollouts -}}{{- $on = append $on "NativeRollouts" -}}{{- end -}}
{{- $state := has $name $on -}}
{{- $set := dict -}}
{{- range splitList "," (index . 0).Values.featureGates -}}
{{- $pair := splitList "=" (trim .) -}}
{{- if eq (len $pair) 2 -}}
{{- $_ := set $set (trim (index $pair 0)) (eq (lower (trim (index $pair 1))) "true") -}}
{{- end -}}
{{- end -}}
{{- if and (has $name $alpha) (hasKey $set "AllAlpha") -}}{{- $state = get $set "AllAlpha" -}}{{- end -}}
{{- if and (has $name $beta) (hasKey $set "AllBeta") -}}{{- $state = get $set "AllBeta" -}}{{- end -}}
{{- if hasKey $set $name -}}{{- $state = get $set $name -}}{{- end -}}
{{- $state -}}
{{- end -}}

{{/* kruisekit.pullJobs: not empty where pull jobs are on, by their gate or by one that needs it. */}}
{{- define "kruisekit.pullJobs" -}}
{{- $root := . -}}
{{- if eq (include "kruisekit.gate" (list $root "KruiseDaemon")) "true" -}}
{{- range list "ImagePullJobGate" "PreDownloadImageForDaemonSetUpdate" "PreDownloadImageForInPlaceUpdate" -}}
{{- if eq (include "kruisekit.gate" (list $root .)) "true" -}}true{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kruisekit.image" -}}
{{- $root := index . 0 -}}
{{- with index . 1 -}}
{{- if hasSuffix "openkruise/kruise-manager" .repository -}}
{{- fail (printf "image.repository is %s, the image of OpenKruise: take the value out, or set your own image" .repository) -}}
{{- end -}}
{{- .repository -}}
{{- if .digest -}}@{{ .digest }}{{- else -}}:{{ .tag | default $root.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kruisekit.managerPullPolicy" -}}
{{- with .Values.manager.image.pullPolicy }}imagePullPolicy: {{ . }}{{- end -}}
{{- end -}}

{{- define "kruisekit.daemonPullPolicy" -}}
{{- with .Values.daemon.image.pullPolicy }}imagePullPolicy: {{ . }}{{- end -}}
{{- end -}}

{{- define "kruisekit.crdAnnotations" -}}
{{- if .Values.crds.keep -}}
helm.sh/resource-policy: keep
{{- end -}}
{{- end -}}

{{- define "kruisekit.convertedAnnotations" -}}
{{- include "kruisekit.crdAnnotations" . -}}
{{- with .Values.externalCerts.annotations }}
{{ toYaml . }}
{{- end -}}
{{- end -}}

{{- define "kruisekit.managerPodLabels" -}}
{{- with .Values.manager.podLabels }}{{ toYaml . }}{{- end -}}
{{- end -}}

{{- define "kruisekit.daemonPodLabels" -}}
{{- with .Values.daemon.podLabels }}{{ toYaml . }}{{- end -}}
{{- end -}}

{{- define "kruisekit.managerPod" -}}
{{- if .Values.manager.hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- with .Values.manager.nodeAffinity }}
affinity:
  nodeAffinity: {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{- define "kruisekit.managerArgs" -}}
{{- if .Values.nativeRollouts }}
- --feature-gates=NativeRollouts=true
{{- end }}
{{- with .Values.featureGates }}
- --feature-gates={{ . }}
{{- end }}
{{- with .Values.manager }}
{{- if ne (toString .metrics.port) "8080" }}
- --metrics-addr=:{{ .metrics.port }}
{{- end }}
{{- if ne (toString .healthProbe.port) "8000" }}
- --health-probe-addr=:{{ .healthProbe.port }}
{{- end }}
{{- if .enablePprof }}
- --enable-pprof
- --pprof-addr={{ .pprofAddr }}
{{- end }}
{{- with .resyncPeriod }}
- --sync-period={{ . }}
{{- end }}
{{- with .loggingFormat }}
- --logging-format={{ . }}
{{- end }}
{{- end }}
{{- if .Values.metrics.secure }}
- --metrics-secure
{{- end }}
{{- with .Values.manager.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kruisekit.managerEnv" -}}
{{- if ne (toString .Values.manager.webhook.port) "9876" }}
- name: WEBHOOK_PORT
  value: {{ .Values.manager.webhook.port | quote }}
{{- end }}
{{- if ne .Values.daemon.secretNamespace "kruise-daemon-config" }}
- name: KRUISE_DAEMON_CONFIG_NS
  value: {{ .Values.daemon.secretNamespace }}
{{- end }}
{{- include "kruisekit.detector" . }}
{{- with .Values.manager.extraEnvs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kruisekit.daemonEnv" -}}
{{- include "kruisekit.detector" . }}
{{- with .Values.daemon.extraEnvs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kruisekit.detector" -}}
{{- if .Values.enableKubeCacheMutationDetector }}
- name: KUBE_CACHE_MUTATION_DETECTOR
  value: "true"
{{- end }}
{{- end -}}

{{- define "kruisekit.daemonArgs" -}}
{{- if .Values.metrics.secure }}
- --addr=:{{ .Values.daemon.port }}
- --metrics-secure
{{- else }}
- --addr={{ .Values.daemon.host }}:{{ .Values.daemon.port }}
{{- end }}
{{- with .Values.featureGates }}
- --feature-gates={{ . }}
{{- end }}
{{- with .Values.daemon.socketFile }}
- --socket-file={{ . }}
{{- end }}
{{- if .Values.daemon.enablePprof }}
- --enable-pprof
- --pprof-addr={{ .Values.daemon.pprofAddr }}
{{- end }}
{{- if .Values.daemon.credentialProvider.enable }}
- --plugin-config-file=/credential-provider-config/CredentialProviderPlugin.yaml
- --plugin-bin-dir=/credential-provider-plugin
{{- end }}
{{- with .Values.daemon.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kruisekit.daemonProbe" -}}
{{- if .Values.metrics.secure }}
scheme: HTTPS
{{- end }}
{{- end -}}

{{- define "kruisekit.daemonMounts" -}}
{{- with .Values.daemon.credentialProvider }}
{{- if .enable }}
- name: credential-provider-config
  mountPath: /credential-provider-config
  readOnly: true
- name: credential-provider-plugin
  mountPath: /credential-provider-plugin
  readOnly: true
{{- if .awsCredentialsDir }}
- name: aws-credentials
  mountPath: /root/.aws
  readOnly: true
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "kruisekit.daemonVolumes" -}}
{{- with .Values.daemon.credentialProvider }}
{{- if .enable }}
- name: credential-provider-config
  configMap:
    name: {{ .configmap }}
- name: credential-provider-plugin
  hostPath:
    path: {{ required "daemon.credentialProvider.hostPath must be the absolute path of the plugins" .hostPath }}
    type: Directory
{{- with .awsCredentialsDir }}
- name: aws-credentials
  hostPath:
    path: {{ . }}
    type: Directory
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "kruisekit.timeout" -}}
{{- with .Values.webhookConfiguration.timeoutSeconds }}
timeoutSeconds: {{ . }}
{{- end }}
{{- end -}}

{{- define "kruisekit.namespaceRequirements" -}}
{{- if .Values.webhookConfiguration.aksIntegration }}
- key: control-plane
  operator: NotIn
  values: ["true"]
- key: kubernetes.azure.com/managedby
  operator: NotIn
  values: [aks]
{{- end }}
{{- end -}}

{{- define "kruisekit.namespaceSelector" -}}
{{- if .Values.webhookConfiguration.aksIntegration }}
namespaceSelector:
  matchExpressions: {{- include "kruisekit.namespaceRequirements" . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The entry of config/takeover/catch-all.yaml. */}}
{{- define "kruisekit.catchAll" -}}
{{- if .Values.webhookConfiguration.catchAll }}
webhooks:
- name: mpod.kb.io
  admissionReviewVersions: [v1, v1beta1]
  clientConfig:
    service:
      name: kruise-webhook-service
      namespace: {{ .Values.installation.namespace }}
      path: /mutate-pod
      port: 443
  failurePolicy: Fail
  sideEffects: NoneOnDryRun
  timeoutSeconds: 10
  namespaceSelector:
    matchExpressions:
    - key: control-plane
      operator: DoesNotExist
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: [{{ .Values.installation.namespace }}, kube-system]
  rules:
  - apiGroups: [""]
    apiVersions: [v1]
    operations: [CREATE]
    resources: [pods]
    scope: Namespaced
{{- end }}
{{- end -}}

{{- define "kruisekit.metricsLabels" -}}
{{- with .Values.metrics.labels }}{{ toYaml . }}{{- end -}}
{{- end -}}

{{- define "kruisekit.managerEndpoint" -}}
{{- if .Values.metrics.secure -}}
- port: metrics
  scheme: https
  authorization:
    credentials:
      name: kruise-metrics-reader
      key: token
  tlsConfig:
    insecureSkipVerify: true
{{- else -}}
- port: metrics
{{- end -}}
{{- end -}}
