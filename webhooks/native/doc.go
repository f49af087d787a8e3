// Package native serves the mutating admission webhook that holds Deployments for controllers/native, on API servers
// that do not serve the MutatingAdmissionPolicy of config/native/hold by default: those before Kubernetes 1.36. The
// rule is that of native.Hold in package workload/native.
//
//	err := native.SetupWithManager(mgr)
//
// Laws:
//   - No call is made to the API server, and every request is admitted.
//   - A Deployment that the policy has held is not sent: its spec.paused is true.
//   - The webhook is down: the built-in controller rolls out, since its failurePolicy is Ignore.
//
// The webhook must not be served where controllers/native does not run: nothing would end a hold. Entries of its
// configuration match Deployments whose annotation asks for a rollout in place, and those of namespaces whose label
// does. See config/webhook/rollout-hold.yaml.
//
// +kubebuilder:webhook:path=/hold-apps-v1-deployment,mutating=true,failurePolicy=ignore,sideEffects=None,reinvocationPolicy=IfNeeded,timeoutSeconds=5,admissionReviewVersions=v1,groups=apps,resources=deployments,verbs=update,versions=v1,name=mrollouthold.kb.io
// +kubebuilder:webhook:path=/hold-apps-v1-deployment,mutating=true,failurePolicy=ignore,sideEffects=None,reinvocationPolicy=IfNeeded,timeoutSeconds=5,admissionReviewVersions=v1,groups=apps,resources=deployments,verbs=update,versions=v1,name=mrolloutholdofnamespace.kb.io
package native
