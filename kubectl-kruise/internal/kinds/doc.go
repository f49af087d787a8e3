// Package kinds states what the commands have to know about the kinds of apps.kruise.io and policy.kruise.io, in each
// version that an API server may serve: where the pod template is, where the rollout is paused, and the typed object.
//
// Objects are unstructured, as the API server returned them. Everything here is a pure function.
package kinds
