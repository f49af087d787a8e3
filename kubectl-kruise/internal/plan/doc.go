// Package plan is the command plan: it prints what a change of a workload will do to its pods, and writes nothing.
//
//	kubectl kruise plan -f new.yaml
//	kubectl kruise plan cloneset/web --image app=web:3
//
// The change of a manifest is what kubectl apply would make of it. Package forecast computes the rest.
//
// The exit code is that of the most severe forecast, so that a pipeline can refuse a change:
//
//	0  no container restarts, and no pod is deleted
//	1  the command failed
//	2  containers restart in their pods
//	3  pods are recreated or deleted
//	4  the rollout does not complete
//
// With --fail-on, less severe forecasts exit with 0.
//
// The command needs the rights to get the workload and to list pods and controllerrevisions of its namespace; for a
// DaemonSet also nodes. It uses the rights to list persistentvolumeclaims and podunavailablebudgets of the namespace,
// and nodes, where the user has them.
package plan
