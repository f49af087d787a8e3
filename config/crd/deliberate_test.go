package crd_test

// deliberate lists where the schemas differ from the reference's on purpose: a pattern of path.Match over
// "group/version Kind path" (without the brackets of lists), and the reason.
func deliberate() map[string]string {
	optionalCounters := "a manifest exported from a built-in StatefulSet carries a status without some counters"
	return map[string]string{
		"apps.kruise.io/v1*1 StatefulSet status.availableReplicas": optionalCounters,
		"apps.kruise.io/v1*1 StatefulSet status.currentReplicas":   optionalCounters,
		"apps.kruise.io/v1*1 StatefulSet status.readyReplicas":     optionalCounters,
		"apps.kruise.io/v1*1 StatefulSet status.updatedReplicas":   optionalCounters,
	}
}
