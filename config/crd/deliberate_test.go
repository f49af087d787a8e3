package crd_test

// deliberate lists where the schemas differ from the reference's on purpose: a pattern of path.Match over
// "group/version Kind path" (without the brackets of lists), and the reason.
func deliberate() map[string]string {
	optionalCounters := "a manifest exported from a built-in StatefulSet carries a status without some counters"
	missingNodes := "the reference does not report pods that wait for a node which is gone"
	oldShape := "up to release 1.8 the template of a CloneSet had the shape of v1alpha1; it is accepted and converted"
	groups := "users proposed budgets of groups of pods, and the reference does not have them"
	cloneSet := "apps.kruise.io/v1alpha1 UnitedDeployment spec.template.cloneSetTemplate.spec."
	return map[string]string{
		"apps.kruise.io/* AdvancedCronJob spec.template.*JobTemplate.metadata.*": "the reference's schema prunes the " +
			"labels and annotations of these jobs",

		cloneSet + "scaleStrategy.disablePVCReuse":         oldShape,
		cloneSet + "updateStrategy.inPlaceUpdateStrategy*": oldShape,
		cloneSet + "updateStrategy.max*":                   oldShape,
		cloneSet + "updateStrategy.partition":              oldShape,
		cloneSet + "updateStrategy.paused":                 oldShape,
		cloneSet + "updateStrategy.priorityStrategy*":      oldShape,
		cloneSet + "updateStrategy.scatterStrategy*":       oldShape,

		"apps.kruise.io/* PersistentPodState status.conditions*":             missingNodes,
		"apps.kruise.io/* PersistentPodState status.podStates*.missingSince": missingNodes,
		"apps.kruise.io/* PersistentPodState status.podStates*.releasedAt":   missingNodes,

		"apps.kruise.io/* StatefulSet status.availableReplicas": optionalCounters,
		"apps.kruise.io/* StatefulSet status.currentReplicas":   optionalCounters,
		"apps.kruise.io/* StatefulSet status.readyReplicas":     optionalCounters,
		"apps.kruise.io/* StatefulSet status.updatedReplicas":   optionalCounters,

		"policy.kruise.io/* PodUnavailableBudget spec.podGroupPolicy*":        groups,
		"policy.kruise.io/* PodUnavailableBudget status.unavailablePodGroups": groups,
	}
}
