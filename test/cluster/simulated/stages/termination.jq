# When the containers of a deleted pod have ended: a time, a duration, or nothing once the kubelet is done with it.
[[ .Seconds ]]
select(.metadata.deletionTimestamp != null)
| (.status.phase | IN("Succeeded", "Failed")) as $ended
| (.metadata.deletionGracePeriodSeconds // 0) as $grace
| ("[[ .Grace ]]" | seconds) as $after
# An ended pod is either one that had completed before, or on its way out already: what comes after a second will not meet
# the one that takes its name.
| if $ended then (if $grace > 0 then "1s" else empty end)
  elif any(.status.containerStatuses[]?; .state.running) | not then "0s"
  # The timestamp is cut to a second, and nobody ends before the whole period is over.
  else (.metadata.deletionTimestamp | fromdate) - $grace + ([$grace + 1, $after] | min) | todate
  end
