package preflight

import "fmt"

// commands are the steps of docs/takeover.md, or of docs/install.md, with the names of this cluster.
func commands(f Facts, in installation, s settings) []string {
	chart := "helm install kruise charts/kruisekit"
	if f.Namespace != "kruise-system" {
		chart += " --set installation.namespace=" + f.Namespace
	}
	switch in.kind {
	case kindKruisekit:
		if f.Manager == nil {
			return []string{chart + "   # under the name of the former release, or with --take-ownership"}
		}
		return []string{"helm upgrade, or kubectl apply --server-side -k: docs/install.md#upgrade"}
	case kindNone:
		if f.NamespaceLabel != nil {
			chart += " --set installation.createNamespace=false"
		}
		if f.SecretNamespace {
			chart += " --set daemon.createSecretNamespace=false"
		}
		return []string{chart}
	}
	lines := []string{
		"1. save the objects: docs/takeover.md#before",
		"2. build the images, and write a kustomization with config/takeover, these gates and these flags: " +
			"docs/install.md#images",
	}
	if h := f.Release; h != nil {
		lines = append(lines, fmt.Sprintf("3. kubectl -n %s delete secrets -l owner=helm,name=%s   # Helm forgets the "+
			"release, and deletes nothing",
			h.Namespace, h.Name))
	} else {
		lines = append(lines, "3. no release of Helm is to be forgotten")
	}
	return append(lines,
		"4. kubectl apply --server-side -f config/takeover/catch-all.yaml",
		fmt.Sprintf("5. kubectl -n %s delete --ignore-not-found deployment/kruise-controller-manager "+
			"daemonset/kruise-daemon "+
			"mutatingwebhookconfiguration/kruise-mutating-webhook-configuration "+
			"validatingwebhookconfiguration/kruise-validating-webhook-configuration", f.Namespace),
		"6. kubectl apply --server-side --force-conflicts -k .   # with "+gatesFlag(s),
		fmt.Sprintf("7. kubectl -n %s rollout status deployment/kruise-controller-manager", f.Namespace),
		"8. check what runs: docs/takeover.md#take-over, steps 4 to 6",
	)
}

func gatesFlag(s settings) string {
	if s.gates == "" {
		return "no --feature-gates"
	}
	return "--feature-gates=" + s.gates + " for manager and daemon"
}

// back is the way back, which depends on what the CRDs of the old installation can read.
func back(in installation) []string {
	if in.high >= 9 {
		return []string{
			"Objects are stored as v1beta1 from step 6 on. Go back to a release whose CRDs have both versions of all kinds:",
			"docs/takeover.md#back-to-openkruise. Keep the manifests of the installation.",
		}
	}
	return []string{
		"Its CRDs lack v1beta1 of most kinds, and API servers reject them once objects are stored as v1beta1,",
		"which begins with step 6. Until then, apply the saved Deployment, DaemonSet and webhook configurations again.",
		"Afterwards go back to a release whose CRDs have both versions: docs/takeover.md#back-to-openkruise.",
	}
}
