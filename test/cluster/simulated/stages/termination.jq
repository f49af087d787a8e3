# When the containers of a deleted pod have ended: a time, a duration, or nothing once the kubelet is done with it.
[[ .Seconds ]]
select(.metadata.deletionTimestamp != null)
| (.status.phase | IN("Succeeded", "Failed")) as $ended
| (.metadata.deletionGracePeriodSeconds // 0) as $grace
| ((.metadata.annotations["simulated.kruisekit.dev/terminate-after"] // "[[ .Grace ]]") | seconds) as $after
| if $ended then (if $grace > 0 then "0s" else empty end)
  elif any(.status.containerStatuses[]?; .state.running) | not then "0s"
  else (.metadata.deletionTimestamp | fromdate) - $grace + ([$grace, $after] | min) | todate
  end
