// Package migrate has the command migrate: from a Deployment to a CloneSet, and from a StatefulSet of apps to one of
// apps.kruise.io.
//
// A Deployment is moved pod by pod, or in place, as a StatefulSet always is: the new workload takes the running pods
// over, and no container restarts. CloneSetOf, StatefulSetOf, Move and Adopt decide; they are pure functions. All state
// is in the objects, so that a run that was interrupted is called again.
package migrate
