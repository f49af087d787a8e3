// Package containerrecreaterequest serves the admission webhook of ContainerRecreateRequest. A new request is completed
// with what must be known of its pod later, or rejected; the spec of an old one cannot be changed. Package
// containerrestart decides what that means; this one reads the pod and its node.
//
//	webhook, err := containerrecreaterequest.New(client, containerrecreaterequest.Options{})
//	if err != nil {
//		return err
//	}
//	return webhook.SetupWithManager(mgr)
//
// The laws are those of package kinds. Beyond these:
//   - Labels that the daemons read are those of the pod, whatever the user wrote there.
//   - Two reads of one object each for a new request; none for one that is invalid by itself, none for an update.
//     Nothing is written.
//   - Without a daemon, only an update of a request that is being deleted is admitted, so that the manager can remove
//     its finalizer.
//
// What cannot be changed is also in a policy, config/webhook/containerrecreaterequest-policy.yaml, which API servers
// enforce without a webhook. It is for clusters that set this webhook to Ignore, and is applied by hand:
//
//	kubectl apply -f config/webhook/containerrecreaterequest-policy.yaml
//
// The client must read without a cache. A container that has just restarted has another ID than in a cache that lags,
// and with the old one the request would be taken for done before it began. Every replica serves admission, and a cache
// of all pods in each would cost more than two reads for each request, which are rare.
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-containerrecreaterequest,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=containerrecreaterequests,verbs=create;update,versions=v1alpha1;v1beta1,name=mcontainerrecreaterequest.kb.io
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=get
package containerrecreaterequest
