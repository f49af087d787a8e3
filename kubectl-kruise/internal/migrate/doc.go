// Package migrate has the command migrate: from a Deployment to a CloneSet, and from a StatefulSet of apps to one of
// apps.kruise.io.
//
// A Deployment is moved pod by pod, or in place, as a StatefulSet always is: the new workload takes the running pods
// over, and no container restarts. CloneSetOf, StatefulSetOf, Move, Settled, Holder, Made and Handover decide; they are
// pure. All state is in the objects, so that a run that was interrupted is called again.
//
// Laws of a migration in place: nothing is deleted before all checks; what is deleted is as it was checked; a pod
// changes its owner only where it has the template of the target; and where no other controller replaces pods, the
// target does, whatever fails.
package migrate
