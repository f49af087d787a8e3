package main

import "strings"

// monitoring says the same of an object of config/monitoring. Daemons that serve plain HTTP serve it to their node
// alone.
func monitoring(o object) source {
	s := source{template: "monitoring.yaml", when: ".Values.metrics.monitors"}
	switch o.kind() {
	case "ConfigMap":
		s.when = ".Values.metrics.dashboards"
	case "PodMonitor", "Secret", "ServiceAccount", "ClusterRoleBinding":
		s.when = "and .Values.metrics.monitors .Values.metrics.secure"
	}
	return s
}

// placeOf says in which template an object of config/default goes, and under which condition.
func placeOf(o object) source {
	switch kind := o.kind(); kind {
	case "Namespace":
		if o.name() == managerNamespace {
			return source{template: "namespaces.yaml", when: ".Values.installation.createNamespace"}
		}
		return source{template: "namespaces.yaml", when: ".Values.daemon.createSecretNamespace"}
	case "CustomResourceDefinition":
		plural, _, _ := strings.Cut(o.name(), ".")
		return source{template: "crd-" + plural + ".yaml", when: ".Values.crds.managed"}
	case "Deployment", "PodDisruptionBudget", "Service":
		return source{template: "manager.yaml"}
	case "DaemonSet":
		return source{template: "daemon.yaml", when: gate("KruiseDaemon")}
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return source{template: "policies.yaml", when: ".Values.admissionPolicies.enabled"}
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		if strings.HasPrefix(o.name(), "kruise-pods-") {
			return source{template: "webhooks.yaml", when: gate("PodWebhook")}
		}
		return source{template: "webhooks.yaml"}
	}
	return source{template: "rbac.yaml"}
}
