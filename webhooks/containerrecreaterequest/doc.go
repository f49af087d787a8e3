// Package containerrecreaterequest serves the admission webhook of ContainerRecreateRequest. A new request is completed with
// what has to be known of its pod later, or refused; the spec of an old one cannot be changed. What that means is decided
// by the package containerrestart; this one reads the pod and its node, and speaks both versions.
//
// Laws:
//   - An object is judged once, as v1beta1.
//   - Labels that the daemons go by are those of the pod, whatever the user wrote there.
//   - Two reads of one object each for a new request; none for one that is wrong by itself, none for an update. Nothing is
//     written.
//   - An update of a request that is being deleted is admitted even without a daemon, so that the manager can remove its
//     finalizer.
//   - No input makes the handler panic.
//
// What cannot be changed is also guarded by a policy, config/webhook/containerrecreaterequest-policy.yaml, which API servers mind by
// themselves. It is for clusters that set this webhook to Ignore, and is applied by hand:
//
//	kubectl apply -f config/webhook/containerrecreaterequest-policy.yaml
//
// In use:
//
//	webhook, err := containerrecreaterequest.New(reader, containerrecreaterequest.Options{})
//	if err != nil {
//		return err
//	}
//	return webhook.SetupWithManager(mgr)
//
// The reader should read without a cache, as one of client.New does. A container that has just restarted has another ID than
// in a cache that lags, and with the old one the request would be taken for done before it began. Every replica serves
// admission, and a cache of all pods in each would cost more than two reads for each request, which are rare.
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-containerrecreaterequest,mutating=true,failurePolicy=fail,sideEffects=None,admissionReviewVersions=v1;v1beta1,groups=apps.kruise.io,resources=containerrecreaterequests,verbs=create;update,versions=v1alpha1;v1beta1,name=mcontainerrecreaterequest.kb.io
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=get
package containerrecreaterequest
