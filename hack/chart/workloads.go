package main

// container returns the only one of a workload.
func container(o object) object {
	all, _ := o.at("spec", "template", "spec")["containers"].([]any)
	c, _ := all[0].(map[string]any)
	return c
}

func named(list any, name string) object {
	all, _ := list.([]any)
	for _, item := range all {
		if o, ok := item.(map[string]any); ok && o["name"] == name {
			return o
		}
	}
	return object{}
}

// manager puts the values of the manager into its Deployment.
func manager(o object) {
	o.at("spec")["replicas"] = value(".Values.manager.replicas")
	meta, pod := o.at("spec", "template", "metadata"), o.at("spec", "template", "spec")
	meta["annotations"] = optional(".Values.manager.podAnnotations")
	meta.at("labels")["chart"] = include("kruisekit.managerPodLabels")
	pod["priorityClassName"] = value(".Values.manager.priorityClassName")
	pod["imagePullSecrets"] = optional(".Values.imagePullSecrets")
	pod["nodeSelector"] = optional(".Values.manager.nodeSelector")
	pod["tolerations"] = optional(".Values.manager.tolerations")
	pod["chart"] = include("kruisekit.managerPod")
	c := container(o)
	c["image"] = value(`include "kruisekit.image" (list . .Values.manager.image)`)
	c["chart"] = include("kruisekit.managerPullPolicy")
	c["args"] = []any{"-v=" + value(".Values.manager.log.level"), include("kruisekit.managerArgs")}
	c["resources"] = block(".Values.manager.resources")
	env, _ := c["env"].([]any)
	named(env, "GOMEMLIMIT")["value"] = value(".Values.manager.goMemLimit")
	c["env"] = append(env, include("kruisekit.managerEnv"))
	named(c["ports"], "webhook")["containerPort"] = value(".Values.manager.webhook.port")
	named(c["ports"], "metrics")["containerPort"] = value(".Values.manager.metrics.port")
	named(c["ports"], "health")["containerPort"] = value(".Values.manager.healthProbe.port")
}

// daemon puts the values of the daemon into its DaemonSet.
func daemon(o object) {
	meta, pod := o.at("spec", "template", "metadata"), o.at("spec", "template", "spec")
	meta["annotations"] = optional(".Values.daemon.podAnnotations")
	meta.at("labels")["chart"] = include("kruisekit.daemonPodLabels")
	pod["priorityClassName"] = value(".Values.daemon.priorityClassName")
	pod["imagePullSecrets"] = optional(".Values.imagePullSecrets")
	pod["nodeSelector"] = optional(".Values.daemon.nodeSelector")
	pod["affinity"] = optional(".Values.daemon.affinity")
	pod["tolerations"] = optional(".Values.daemon.tolerations")
	volumes, _ := pod["volumes"].([]any)
	named(volumes, "run").at("hostPath")["path"] = value(".Values.daemon.socketLocation")
	pod["volumes"] = append(volumes, include("kruisekit.daemonVolumes"))
	c := container(o)
	c["image"] = value(`include "kruisekit.image" (list . .Values.daemon.image)`)
	c["chart"] = include("kruisekit.daemonPullPolicy")
	c["args"] = []any{"-v=" + value(".Values.daemon.log.level"), include("kruisekit.daemonArgs")}
	c["resources"] = block(".Values.daemon.resources")
	env, _ := c["env"].([]any)
	c["env"] = append(env, include("kruisekit.daemonEnv"))
	mounts, _ := c["volumeMounts"].([]any)
	c["volumeMounts"] = append(mounts, include("kruisekit.daemonMounts"))
	named(c["ports"], "metrics")["containerPort"] = value(".Values.daemon.port")
	for _, probe := range []string{"livenessProbe", "readinessProbe"} {
		c.at(probe, "httpGet")["chart"] = include("kruisekit.daemonProbe")
	}
}

// webhooks puts what values change into each entry.
func webhooks(o object) {
	o.at("metadata")["annotations"] = optional(".Values.externalCerts.annotations")
	entries, _ := o["webhooks"].([]any)
	for _, entry := range entries {
		e, _ := entry.(map[string]any)
		if _, set := e["timeoutSeconds"]; !set {
			e["chart"] = include("kruisekit.timeout")
		}
		selector := object(e).at("namespaceSelector")
		expressions, _ := selector["matchExpressions"].([]any)
		if len(expressions) == 0 {
			delete(e, "namespaceSelector")
			e["chartSelector"] = include("kruisekit.namespaceSelector")
			continue
		}
		selector["matchExpressions"] = append(expressions, include("kruisekit.namespaceRequirements"))
	}
	if o.name() == "kruise-pods-webhook-configuration" && o.kind() == "MutatingWebhookConfiguration" {
		o["chart"] = include("kruisekit.catchAll")
	}
}
