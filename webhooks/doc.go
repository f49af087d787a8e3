// Package webhooks adds the webhooks of this library to a controller-runtime manager, at the paths that the manifests
// in config/webhook and config/crd name.
//
//	err := webhooks.AddToManager(mgr, webhooks.Options{})
//
// Do not use it for one of them in a manager of your own: their packages below this one stand alone. What serves them
// needs a certificate, for which webhooks/certificates is made.
//
// All replicas serve, no leader is needed.
package webhooks
