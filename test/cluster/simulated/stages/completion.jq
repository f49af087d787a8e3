# When the containers of a pod that shall complete end: a time, or nothing.
[[ .Seconds ]]
select(.metadata.deletionTimestamp == null and .status.phase == "Running" and .spec.restartPolicy != "Always")
| (.metadata.annotations["simulated.kruisekit.dev/complete-after"] // empty | seconds) as $after
| (.status.startTime | fromdate) + $after | todate
