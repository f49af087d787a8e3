package gitops

// A state of an object, and what tools are to say of it.
type state struct {
	why string
	// spec, status and generation are those of the object; generation is 2 where it is 0.
	spec, status string
	generation   int64
	// argo is the status of Argo CD, and message a part of its message.
	argo, message string
}

// states of objects by kind. Each kind has one that is healthy.
var states = map[string][]state{
	"CloneSet": {
		{why: "a new spec", spec: "{replicas: 3}", status: "{observedGeneration: 1}", argo: "Progressing", message: "not been observed"},
		{why: "a new object", spec: "{replicas: 3}", status: "", argo: "Progressing"},
		{
			why: "a rollout", spec: "{replicas: 3}", argo: "Progressing", message: "1 of 3 pods are updated",
			status: "{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, expectedUpdatedReplicas: 3}",
		},
		{
			why: "its end", spec: "{replicas: 3}", argo: "Healthy",
			status: "{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3, expectedUpdatedReplicas: 3}",
		},
		{
			why: "a partition", spec: `{replicas: 10, updateStrategy: {rollingUpdate: {partition: "80%"}}}`, argo: "Healthy",
			status:  "{observedGeneration: 2, replicas: 10, availableReplicas: 10, updatedReplicas: 2, expectedUpdatedReplicas: 2}",
			message: "keeps 8 pods",
		},
		{
			why: "a surge pod", spec: "{replicas: 3}", argo: "Progressing",
			status: "{observedGeneration: 2, replicas: 4, availableReplicas: 3, updatedReplicas: 3, expectedUpdatedReplicas: 3}",
		},
		{
			why: "an image that does not exist", spec: "{replicas: 3}", argo: "Degraded", message: "Stalled: web-x cannot pull",
			status: `{observedGeneration: 2, conditions: [{type: Stalled, status: "True", reason: ImagePull, message: web-x cannot pull}]}`,
		},
		{
			why: "a pause", spec: "{replicas: 3, updateStrategy: {rollingUpdate: {paused: true}}}", argo: "Suspended",
			status: "{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, expectedUpdatedReplicas: 3}",
		},
	},
	"StatefulSet": {
		{
			why: "all pods", spec: "{replicas: 3}", argo: "Healthy",
			status: "{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3}",
		},
		{
			why: "a rollout", spec: "{replicas: 3}", argo: "Progressing", message: "2 of 3 pods are updated",
			status: "{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 2}",
		},
		{
			why: "a partition", spec: "{replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}", argo: "Healthy",
			status: "{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1}", message: "keeps 2 pods",
		},
		{
			why: "OnDelete", spec: "{replicas: 3, updateStrategy: {type: OnDelete}}", argo: "Healthy",
			status: "{observedGeneration: 2, replicas: 3, availableReplicas: 3}",
		},
		{
			why: "pods that are not created", spec: "{replicas: 3}", argo: "Degraded",
			status: `{observedGeneration: 2, conditions: [{type: FailedCreatePod, status: "True", message: quota}]}`,
		},
	},
	"DaemonSet": {
		{
			why: "all nodes", spec: "{}", argo: "Healthy",
			status: "{observedGeneration: 2, desiredNumberScheduled: 5, numberAvailable: 5, updatedNumberScheduled: 5}",
		},
		{why: "no node", spec: "{}", status: "{observedGeneration: 2}", argo: "Healthy"},
		{
			why: "a rollout", spec: "{}", argo: "Progressing", message: "2 of 5 pods are updated",
			status: "{observedGeneration: 2, desiredNumberScheduled: 5, numberAvailable: 5, updatedNumberScheduled: 2}",
		},
		{
			why: "a share", spec: `{updateStrategy: {rollingUpdate: {partition: "50%"}}}`, argo: "Healthy",
			status: "{observedGeneration: 2, desiredNumberScheduled: 5, numberAvailable: 5, updatedNumberScheduled: 2}",
		},
		{
			why: "a stop", spec: "{}", argo: "Degraded",
			status: `{observedGeneration: 2, conditions: [{type: Stalled, status: "True", reason: CrashLoop}]}`,
		},
	},
	"UnitedDeployment": {
		{
			why: "all pods", spec: "{replicas: 4}", argo: "Healthy",
			status: "{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4}",
		},
		{
			why: "partitions", spec: "{replicas: 4, updateStrategy: {manualUpdate: {partitions: {a: 1, b: 2}}}}", argo: "Healthy",
			status: "{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 1}", message: "keep 3 pods",
		},
		{
			why: "a subset that fails", spec: "{replicas: 4}", argo: "Degraded",
			status: `{observedGeneration: 2, conditions: [{type: SubsetFailure, status: "True", message: numbers}]}`,
		},
		{why: "few pods", spec: "{replicas: 4}", status: "{observedGeneration: 2, replicas: 4, readyReplicas: 1}", argo: "Progressing"},
	},
	"SidecarSet": {
		{why: "all pods", spec: "{}", status: "{observedGeneration: 2, matchedPods: 3, updatedPods: 3, updatedReadyPods: 3}", argo: "Healthy"},
		{why: "no pod", spec: "{}", status: "{observedGeneration: 2}", argo: "Healthy"},
		{
			why: "a rollout", spec: "{updateStrategy: {type: RollingUpdate, partition: 0, maxUnavailable: 1}}", argo: "Progressing",
			status: "{observedGeneration: 2, matchedPods: 3, updatedReadyPods: 1}",
		},
		{
			why: "a partition", spec: `{updateStrategy: {type: RollingUpdate, partition: "50%"}}`, argo: "Healthy",
			status: "{observedGeneration: 2, matchedPods: 3, updatedPods: 1, updatedReadyPods: 1}",
		},
		{
			why: "NotUpdate", spec: "{updateStrategy: {type: NotUpdate}}", argo: "Healthy",
			status: "{observedGeneration: 2, matchedPods: 3, updatedReadyPods: 1}",
		},
		{
			why: "a pause", spec: "{updateStrategy: {paused: true}}", argo: "Suspended",
			status: "{observedGeneration: 2, matchedPods: 3, updatedReadyPods: 1}",
		},
	},
	"BroadcastJob": {
		{why: "a new job", spec: "{}", status: "", argo: "Progressing"},
		{why: "the end", spec: "{}", status: "{phase: completed, desired: 3, succeeded: 3}", argo: "Healthy", message: "3 nodes"},
		{why: "a failure", spec: "{}", status: "{phase: failed, failed: 1}", argo: "Degraded"},
		{why: "a pause", spec: "{paused: true}", status: "{phase: paused}", argo: "Suspended"},
		{
			why: "a job without an end", spec: "{completionPolicy: {type: Never}}", argo: "Healthy",
			status: "{phase: running, desired: 3, succeeded: 3, active: 0}",
		},
	},
	"EphemeralJob": {
		{why: "a new job", spec: "{}", status: "", argo: "Progressing"},
		{why: "the end", spec: "{}", status: "{phase: Succeeded, match: 2, succeeded: 2}", argo: "Healthy"},
		{why: "a failure", spec: "{}", status: "{phase: Failed, failed: 1}", argo: "Degraded"},
		{why: "a pause", spec: "{paused: true}", status: "{phase: Waiting}", argo: "Suspended"},
	},
	"ImagePullJob": {
		{why: "a new job", spec: "{}", status: "", argo: "Progressing"},
		{
			why: "the end", spec: "{}", argo: "Healthy",
			status: `{desired: 3, succeeded: 3, completionTime: "2026-01-01T00:00:00Z", message: job is completed}`,
		},
		{
			why: "a failure", spec: "{}", argo: "Degraded",
			status: `{desired: 3, succeeded: 2, failed: 1, completionTime: "2026-01-01T00:00:00Z"}`,
		},
		{
			why: "a job without an end", spec: "{completionPolicy: {type: Never}}", argo: "Healthy",
			status: "{desired: 3, succeeded: 3}",
		},
	},
	"ImageListPullJob": {
		{why: "under way", spec: "{}", status: "{desired: 2, completed: 1, active: 1}", argo: "Progressing"},
		{why: "the end", spec: "{}", status: `{desired: 2, completed: 2, completionTime: "2026-01-01T00:00:00Z"}`, argo: "Healthy"},
		{
			why: "a failure", spec: "{}", argo: "Degraded", message: "1 images",
			status: `{desired: 2, completed: 2, completionTime: "2026-01-01T00:00:00Z", failedImageStatuses: [{name: x}]}`,
		},
	},
	"ContainerRecreateRequest": {
		{why: "a new request", spec: "{}", status: "", argo: "Progressing"},
		{why: "the end", spec: "{}", status: "{phase: Completed, containerRecreateStates: [{name: web, phase: Succeeded}]}", argo: "Healthy"},
		{
			why: "a failure", spec: "{}", argo: "Degraded", message: "web: no pod",
			status: "{phase: Completed, containerRecreateStates: [{name: web, phase: Failed, message: no pod}]}",
		},
	},
	"AdvancedCronJob": {
		{why: "a schedule", spec: "{}", status: "{active: [{name: a}]}", argo: "Healthy", message: "1 jobs"},
		{why: "a pause", spec: "{paused: true}", status: "", argo: "Suspended"},
	},
	"WorkloadSpread": {
		{why: "a new spec", spec: "{}", status: "{observedGeneration: 1}", argo: "Progressing"},
		{
			why: "a full subset", spec: "{}", argo: "Healthy", message: "the subset a is unschedulable",
			status: `{observedGeneration: 2, subsetStatuses: [{name: a, conditions: [{type: SubsetSchedulable, status: "False"}]}]}`,
		},
	},
	"PodUnavailableBudget": {
		{why: "enough pods", spec: "{}", status: "{observedGeneration: 2, currentAvailable: 3, desiredAvailable: 2, unavailableAllowed: 1}", argo: "Healthy"},
		{why: "few pods", spec: "{}", status: "{observedGeneration: 2, currentAvailable: 1, desiredAvailable: 2}", argo: "Progressing"},
	},
	"ResourceDistribution": {
		{why: "all copies", spec: "{}", status: "{observedGeneration: 2, desired: 3, succeeded: 3}", argo: "Healthy"},
		{why: "a failure", spec: "{}", status: "{observedGeneration: 2, desired: 3, succeeded: 2, failed: 1}", argo: "Degraded"},
		{why: "under way", spec: "{}", status: "{observedGeneration: 2, desired: 3, succeeded: 2}", argo: "Progressing"},
	},
	"PersistentPodState": {{why: "observed", spec: "{}", status: "{observedGeneration: 2}", argo: "Healthy"}},
	"PodProbeMarker":     {{why: "observed", spec: "{}", status: "{observedGeneration: 2, matchedPods: 4}", argo: "Healthy", message: "4 pods"}},
	"NodeImage": {
		{why: "all images", spec: "{}", status: "{desired: 2, succeeded: 2}", argo: "Healthy"},
		{why: "a pull", spec: "{}", status: "{desired: 2, pulling: 1}", argo: "Progressing"},
		{why: "a failure", spec: "{}", status: "{desired: 2, failed: 1}", argo: "Degraded"},
	},
	"NodePodProbe": {{why: "any", spec: "{}", status: "{podProbeStatuses: [{name: x}]}", argo: "Healthy", message: "1 pods"}},
}
