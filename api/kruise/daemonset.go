package kruise

// DaemonSetTemplateGenerationKey is the label that built-in DaemonSets of old put on their pods. A DaemonSet
// that was one of them still writes it, with the value of its annotation deprecated.daemonset.template.generation.
const DaemonSetTemplateGenerationKey = "pod-template-generation"
