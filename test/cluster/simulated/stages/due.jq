# When a kubelet would next write this pod's status: a duration, or nothing. It may say "now" too often, for then
# status.tpl changes nothing and nothing is written; it must not miss anything.
select(.metadata.deletionTimestamp == null and (.status.phase | IN("Succeeded", "Failed") | not))
| .metadata.generation as $generation
| [.spec.containers[], (.spec.initContainers[]? | select(.restartPolicy == "Always"))] as $containers
| [.status.containerStatuses[]?, .status.initContainerStatuses[]?] as $statuses
| [.spec.readinessGates[]?.conditionType] as $gates
| (reduce $statuses[] as $s ({}; .[$s.name] = $s)) as $has
| (reduce .status.conditions[]? as $c ({}; .[$c.type] = $c)) as $condition
| [$containers[] | {name, image, resources, is: $has[.name]}] as $containers
| all($containers[]; .is.ready and .is.state.running) as $ready
| if .status.startTime == null then "[[ .Start ]]"
  elif any($containers[]; .is.image != .image or .is.state.running == null) then "[[ .Restart ]]"
  elif any($containers[]; (.resources | {limits, requests}) != (.is.resources | {limits, requests})) then
    if ($condition.PodResizeInProgress | .status == "True" and (.observedGeneration // $generation) == $generation)
    then "[[ .Resize ]]" else "0s" end
  elif $condition.PodResizeInProgress
    or $generation != .status.observedGeneration
    or ($ready | not)
    or ($condition.ContainersReady.status == "True") != $ready
    or ($condition.Ready.status == "True") != ($ready and all($gates[]; $condition[.].status == "True"))
  then "0s"
  else empty
  end
