{{- /* The next status of a pod, from its spec and its last status: what a kubelet's syncPod reports. What is right
already is carried over as it is, so that a status with nothing to change stays equal and is not written. */ -}}
{{- $pod := . -}}
{{- $now := Now -}}
{{- $generation := .metadata.generation -}}

{{- $had := dict -}}
{{- range concat (.status.containerStatuses | default list) (.status.initContainerStatuses | default list) -}}
  {{- $_ := set $had .name . -}}
{{- end -}}
{{- $conditions := dict -}}
{{- range .status.conditions -}}
  {{- $_ := set $conditions .type . -}}
{{- end -}}

{{- /* A digest that follows from the name, so that one image has one ID on all nodes. */ -}}
{{- $imageIDs := dict -}}
{{- range concat .spec.containers (.spec.initContainers | default list) -}}
  {{- $id := .image -}}
  {{- if not (contains "@" .image) -}}
    {{- $repository := regexReplaceAll ":[^:/]*$" .image "" -}}
    {{- $digest := ternary (printf "%s:latest" .image) .image (eq $repository .image) | sha256sum -}}
    {{- if not (contains "/" $repository) -}}
      {{- $repository = printf "docker.io/library/%s" $repository -}}
    {{- else if not (regexMatch "^(localhost|[^/]*[.:][^/]*)/" $repository) -}}
      {{- $repository = printf "docker.io/%s" $repository -}}
    {{- end -}}
    {{- $id = printf "%s@sha256:%s" $repository $digest -}}
  {{- end -}}
  {{- $_ := set $imageIDs .image $id -}}
{{- end -}}

{{- /* Containers that run for as long as the pod does; the other init containers end. */ -}}
{{- $sidecars := list -}}
{{- range .spec.initContainers -}}
  {{- if eq (.restartPolicy | default "") "Always" -}}{{- $sidecars = append $sidecars . -}}{{- end -}}
{{- end -}}
{{- $lasting := concat .spec.containers $sidecars -}}

{{- /* A resize is taken on in one write and done in the next. */ -}}
{{- $resizing := "" -}}
{{- range $lasting -}}
  {{- $has := get $had .name -}}
  {{- if $has -}}
    {{- if not (deepEqual (pick (.resources | default dict) "limits" "requests") (pick ($has.resources | default dict) "limits" "requests")) -}}
      {{- $progress := get $conditions "PodResizeInProgress" -}}
      {{- if not $progress -}}
        {{- $resizing = "begun" -}}
      {{- else if ne ($progress.observedGeneration | default $generation | toString) ($generation | toString) -}}
        {{- $resizing = "begun" -}}
      {{- else -}}
        {{- $resizing = "done" -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}

{{- $next := dict -}}
{{- $unready := list -}}
{{- $neverRan := 0 -}}
{{- range $lasting -}}
  {{- $has := get $had .name -}}
  {{- $state := dict -}}
  {{- $is := dict "name" .name "image" .image "imageID" "" "restartCount" 0 "ready" false "started" false "state" dict "lastState" dict -}}
  {{- if $has -}}
    {{- $is = deepCopy $has -}}
    {{- $state = $has.state | default dict -}}
  {{- end -}}
  {{- $want := pick (.resources | default dict) "limits" "requests" -}}
  {{- $start := false -}}

  {{- if and $state.running (eq $is.image .image) -}}
    {{- if and (eq $resizing "begun") $want.requests -}}
      {{- $_ := set $is "allocatedResources" $want.requests -}}
    {{- else if and (eq $resizing "done") (not (deepEqual $want (pick ($is.resources | default dict) "limits" "requests"))) -}}
      {{- range .resizePolicy -}}
        {{- $before := pick (dig "limits" dict ($is.resources | default dict)) .resourceName -}}
        {{- $after := pick (dig "limits" dict $want) .resourceName -}}
        {{- $requestBefore := pick (dig "requests" dict ($is.resources | default dict)) .resourceName -}}
        {{- $requestAfter := pick (dig "requests" dict $want) .resourceName -}}
        {{- if and (eq .restartPolicy "RestartContainer") (not (and (deepEqual $before $after) (deepEqual $requestBefore $requestAfter))) -}}
          {{- $start = true -}}
        {{- end -}}
      {{- end -}}
      {{- $_ := set $is "resources" $want -}}
      {{- if $start -}}
        {{- $_ := set $is "lastState" (dict "terminated" (dict "exitCode" 0 "reason" "Completed" "startedAt" $state.running.startedAt "finishedAt" $now "containerID" $is.containerID)) -}}
      {{- end -}}
    {{- end -}}
  {{- else if $state.running -}}
    {{- $ended := dict "exitCode" 0 "reason" "Completed" "startedAt" $state.running.startedAt "finishedAt" $now "containerID" $is.containerID -}}
    {{- if eq $pod.spec.restartPolicy "Always" -}}
      {{- $_ := set $is "state" (dict "terminated" $ended) -}}
    {{- else -}}
      {{- /* The API server lets no container come back from terminated under these policies. */ -}}
      {{- $_ := set $is "state" (dict "waiting" (dict "reason" "ContainerCreating")) -}}
      {{- $_ := set $is "lastState" (dict "terminated" $ended) -}}
    {{- end -}}
  {{- else -}}
    {{- $start = true -}}
    {{- if $state.terminated -}}{{- $_ := set $is "lastState" (dict "terminated" $state.terminated) -}}{{- end -}}
  {{- end -}}

  {{- if $start -}}
    {{- $count := 0 -}}
    {{- if $is.containerID -}}{{- $count = add1 (toString $is.restartCount | atoi) -}}{{- end -}}
    {{- $id := printf "%s/%s/%d" $pod.metadata.uid .name $count | sha256sum | printf "containerd://%s" -}}
    {{- $_ := set $is "restartCount" $count -}}
    {{- $_ := set $is "containerID" $id -}}
    {{- $_ := set $is "image" .image -}}
    {{- $_ := set $is "imageID" (get $imageIDs .image) -}}
    {{- $_ := set $is "resources" $want -}}
    {{- if $want.requests -}}{{- $_ := set $is "allocatedResources" $want.requests -}}{{- end -}}
    {{- $_ := set $is "state" (dict "running" (dict "startedAt" $now)) -}}
  {{- end -}}

  {{- $runs := dig "state" "running" false $is -}}
  {{- $_ := set $is "started" (ternary true false (not (not $runs))) -}}
  {{- $_ := set $is "ready" $is.started -}}
  {{- if not $is.ready -}}{{- $unready = append $unready .name -}}{{- end -}}
  {{- if and (not $runs) (not (dig "state" "terminated" false $is)) (not (dig "lastState" "terminated" false $is)) -}}
    {{- $neverRan = add1 $neverRan -}}
  {{- end -}}
  {{- $_ := set $next .name $is -}}
{{- end -}}

{{- $containers := list -}}
{{- range .spec.containers -}}{{- $containers = append $containers (get $next .name) -}}{{- end -}}
{{- $inits := list -}}
{{- range .spec.initContainers -}}
  {{- $is := get $next .name | default (get $had .name) -}}
  {{- if not $is -}}
    {{- $id := printf "%s/%s/0" $pod.metadata.uid .name | sha256sum | printf "containerd://%s" -}}
    {{- $ended := dict "exitCode" 0 "reason" "Completed" "startedAt" $now "finishedAt" $now "containerID" $id -}}
    {{- $is = dict "name" .name "image" .image "imageID" (get $imageIDs .image) "containerID" $id "restartCount" 0 "ready" true "started" false "state" (dict "terminated" $ended) "lastState" dict "resources" (pick (.resources | default dict) "limits" "requests") -}}
  {{- end -}}
  {{- $inits = append $inits $is -}}
{{- end -}}

{{- $gates := list -}}
{{- range .spec.readinessGates -}}
  {{- $gate := get $conditions .conditionType | default dict -}}
  {{- if ne ($gate.status | default "") "True" -}}{{- $gates = append $gates (printf "%q" .conditionType) -}}{{- end -}}
{{- end -}}

{{- $of := dict -}}
{{- $ours := list "PodReadyToStartContainers" "Initialized" "Ready" "ContainersReady" "PodScheduled" -}}
{{- range $ours -}}
  {{- $_ := set $of . (dict "type" . "status" "True") -}}
{{- end -}}
{{- if $unready -}}
  {{- $message := printf "containers with unready status: [%s]" (join " " $unready) -}}
  {{- range list "Ready" "ContainersReady" -}}
    {{- $_ := set $of . (dict "type" . "status" "False" "reason" "ContainersNotReady" "message" $message) -}}
  {{- end -}}
{{- else if $gates -}}
  {{- $message := printf "the status of pod readiness gate %s is not \"True\"" (join ", " $gates) -}}
  {{- $_ := set $of "Ready" (dict "type" "Ready" "status" "False" "reason" "ReadinessGatesNotReady" "message" $message) -}}
{{- end -}}
{{- if eq $resizing "begun" -}}
  {{- $_ := set $of "PodResizeInProgress" (dict "type" "PodResizeInProgress" "status" "True") -}}
{{- end -}}

{{- /* Others' conditions stay, and every one keeps its place: a new order alone would be a write. */ -}}
{{- $all := list -}}
{{- range concat (.status.conditions | default list) $ours (list "PodResizeInProgress") -}}
  {{- $type := . -}}
  {{- $was := dict -}}
  {{- if kindIs "map" . -}}{{- $type = .type -}}{{- $was = . -}}{{- end -}}
  {{- if and (hasKey $of $type) (or $was (not (hasKey $conditions $type))) -}}
    {{- $is := get $of $type -}}
    {{- $_ := set $is "lastTransitionTime" $now -}}
    {{- if and $was.lastTransitionTime (eq ($was.status | default "") $is.status) -}}
      {{- $_ := set $is "lastTransitionTime" $was.lastTransitionTime -}}
    {{- end -}}
    {{- if $generation -}}{{- $_ := set $is "observedGeneration" $generation -}}{{- end -}}
    {{- $all = append $all $is -}}
  {{- else if and $was (ne $type "PodResizeInProgress") -}}
    {{- $all = append $all . -}}
  {{- end -}}
{{- end -}}

{{- $status := dict "phase" (ternary "Pending" "Running" (gt (int $neverRan) 0)) "startTime" (.status.startTime | default $now) "conditions" $all "containerStatuses" $containers -}}
{{- if $inits -}}{{- $_ := set $status "initContainerStatuses" $inits -}}{{- end -}}
{{- if $generation -}}{{- $_ := set $status "observedGeneration" $generation -}}{{- end -}}
{{- if not .status.podIP -}}
  {{- range $key, $ips := dict "hostIP" (NodeIPsWith .spec.nodeName) "podIP" (PodIPsWith .spec.nodeName (.spec.hostNetwork | default false) .metadata.uid .metadata.name .metadata.namespace) -}}
    {{- $_ := set $status $key (first $ips) -}}
    {{- $list := list -}}
    {{- range $ips -}}{{- $list = append $list (dict "ip" .) -}}{{- end -}}
    {{- $_ := set $status (printf "%ss" $key) $list -}}
  {{- end -}}
{{- end -}}
{{- dict "metadata" (dict "uid" .metadata.uid "resourceVersion" .metadata.resourceVersion) "status" $status | toJson -}}
