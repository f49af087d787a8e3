{{- /* The last status of a pod: its containers have ended, and with them the pod. */ -}}
{{- $now := Now -}}
{{- $generation := .metadata.generation -}}
{{- $failed := not .status.containerStatuses -}}
{{- $status := dict -}}
{{- range $key := list "containerStatuses" "initContainerStatuses" -}}
  {{- $list := list -}}
  {{- range get $.status $key | default list -}}
    {{- $is := deepCopy . -}}
    {{- $state := .state | default dict -}}
    {{- if not $state.terminated -}}
      {{- $ended := dict "exitCode" 137 "reason" "ContainerStatusUnknown" "message" "The container could not be located when the pod was terminated" -}}
      {{- if $state.running -}}
        {{- $ended = dict "exitCode" 0 "reason" "Completed" "startedAt" $state.running.startedAt "finishedAt" $now "containerID" .containerID -}}
      {{- end -}}
      {{- $_ := set $is "state" (dict "terminated" $ended) -}}
      {{- $_ := set $is "ready" false -}}
      {{- $_ := set $is "started" false -}}
      {{- if ne (toString $ended.exitCode) "0" -}}{{- $failed = true -}}{{- end -}}
    {{- end -}}
    {{- $list = append $list $is -}}
  {{- end -}}
  {{- if $list -}}{{- $_ := set $status $key $list -}}{{- end -}}
{{- end -}}
{{- $phase := ternary "Failed" "Succeeded" $failed -}}
{{- if has .status.phase (list "Failed" "Succeeded") -}}{{- $phase = .status.phase -}}{{- end -}}
{{- $_ := set $status "phase" $phase -}}
{{- if $generation -}}{{- $_ := set $status "observedGeneration" $generation -}}{{- end -}}

{{- $conditions := list -}}
{{- range .status.conditions -}}
  {{- $is := deepCopy . -}}
  {{- if and (has .type (list "Ready" "ContainersReady" "PodReadyToStartContainers")) (ne .status "False") -}}
    {{- $_ := set $is "status" "False" -}}
    {{- $_ := set $is "lastTransitionTime" $now -}}
    {{- if ne .type "PodReadyToStartContainers" -}}
      {{- $_ := set $is "reason" (ternary "PodFailed" "PodCompleted" $failed) -}}
    {{- end -}}
  {{- end -}}
  {{- $conditions = append $conditions $is -}}
{{- end -}}
{{- if $conditions -}}{{- $_ := set $status "conditions" $conditions -}}{{- end -}}
{{- dict "metadata" (dict "uid" .metadata.uid "resourceVersion" .metadata.resourceVersion) "status" $status | toJson -}}
