package crd_test

// deliberate lists where the schemas differ from the reference's on purpose: a pattern of path.Match over
// "group/version Kind path" (without the brackets of lists), and the reason.
func deliberate() map[string]string {
	return map[string]string{
		"apps.kruise.io/* AdvancedCronJob spec.template.*JobTemplate.metadata.*": "the reference's schema prunes the labels and annotations of these jobs",
	}
}
