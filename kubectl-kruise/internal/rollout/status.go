package rollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

// Status returns what rollout status prints for an object, and reports whether the rollout is done. An error means that
// it will never be done, or that the kind has no rollout.
func Status(o *unstructured.Unstructured) (line string, done bool, err error) {
	switch {
	case kinds.Is(o, kinds.CloneSet):
		return read(o, kinds.ReadCloneSet, cloneSetStatus)
	case kinds.Is(o, kinds.StatefulSet):
		return read(o, kinds.ReadStatefulSet, statefulSetStatus)
	case kinds.Is(o, kinds.DaemonSet):
		return read(o, kinds.ReadDaemonSet, daemonSetStatus)
	case kinds.Is(o, kinds.UnitedDeployment):
		return read(o, kinds.ReadUnitedDeployment, unitedDeploymentStatus)
	case kinds.Is(o, kinds.SidecarSet):
		return read(o, kinds.ReadSidecarSet, sidecarSetStatus)
	case kinds.Is(o, kinds.BroadcastJob):
		return read(o, kinds.ReadBroadcastJob, broadcastJobStatus)
	case o.GroupVersionKind().Group == kinds.Rollouts:
		return kruiseRolloutStatus(o)
	case kinds.IsInPlace(o):
		return inPlaceStatus(o)
	default:
		return "", false, fmt.Errorf("no status viewer has been implemented for %v", o.GroupVersionKind().GroupKind())
	}
}

func read[T any](
	o *unstructured.Unstructured, read func(*unstructured.Unstructured) (*T, error), status func(*T) (string, bool, error),
) (string, bool, error) {
	typed, err := read(o)
	if err != nil {
		return "", false, err
	}
	return status(typed)
}

// partitioned is a rollout that keeps some instances at the older revision.
type partitioned struct {
	kind                      string
	generation, observed      int64
	want                      int32 // how many are to be updated
	updated, ready, replicas  int32 // ready counts all, or the updated where a partition keeps others
	inPlace, keeps            bool
	revision                  string
	waiting, finished, allNew string // the lines of the kind
}

// status returns the line of the first thing that the rollout waits for.
func (p partitioned) status() (string, bool, error) {
	switch {
	case p.observed < p.generation:
		return fmt.Sprintf("Waiting for %s spec update to be observed...\n", p.kind), false, nil
	case p.updated < p.want:
		return fmt.Sprintf(p.waiting, p.updated, p.want), false, nil
	case p.ready < p.replicas:
		return fmt.Sprintf("Waiting for %d pods to be ready...\n", p.replicas-p.ready), false, nil
	case p.inPlace || p.keeps:
		return fmt.Sprintf(p.finished, p.updated), true, nil
	default:
		return fmt.Sprintf(p.allNew, p.replicas, p.revision), true, nil
	}
}

func cloneSetStatus(set *v1beta1.CloneSet) (string, bool, error) {
	p := partitioned{
		kind: "CloneSet", generation: set.Generation, observed: set.Status.ObservedGeneration,
		want: ptr.Deref(set.Spec.Replicas, 1), updated: set.Status.UpdatedReplicas, ready: set.Status.ReadyReplicas,
		replicas: ptr.Deref(set.Spec.Replicas, 1), revision: set.Status.UpdateRevision,
		waiting:  "Waiting for partitioned roll out to finish: %d out of %d new pods have been updated...\n",
		finished: "partitioned roll out complete: %d new pods have been updated...\n",
		allNew:   "CloneSet rolling update complete %d pods at revision %s...\n",
	}
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil {
		return p.status()
	}
	p.inPlace = string(rolling.PodUpdatePolicy) != "" && string(rolling.PodUpdatePolicy) != string(kinds.Recreate)
	if rolling.Partition != nil {
		kept := kinds.Kept(rolling.Partition, p.replicas)
		p.keeps, p.want = kept > 0, p.replicas-kept
	}
	return p.status()
}

func statefulSetStatus(set *v1beta1.StatefulSet) (string, bool, error) {
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	p := partitioned{
		kind: "Advanced StatefulSet", generation: set.Generation, observed: set.Status.ObservedGeneration,
		want: replicas, updated: set.Status.UpdatedReplicas, ready: set.Status.ReadyReplicas, replicas: replicas,
		revision: set.Status.UpdateRevision,
		waiting:  "Waiting for partitioned roll out to finish:%d out of %d new pods have been updated...\n",
		finished: "partitioned roll out complete: %d new pods have been updated...\n",
		allNew:   "Advanced StatefulSet rolling update complete %d pods at revision %s...\n",
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		first := *rolling.Partition // an ordinal, where the order of updates is that of ordinals
		if set.Spec.Ordinals != nil && rolling.UnorderedUpdate == nil {
			first -= set.Spec.Ordinals.Start
		}
		kept := min(max(first, 0), replicas)
		p.keeps, p.want = kept > 0, replicas-kept
	}
	return p.status()
}

func daemonSetStatus(set *v1beta1.DaemonSet) (string, bool, error) {
	desired := set.Status.DesiredNumberScheduled
	p := partitioned{
		kind: "DaemonSet", generation: set.Generation, observed: set.Status.ObservedGeneration,
		want: desired, updated: set.Status.UpdatedNumberScheduled, ready: set.Status.NumberAvailable, replicas: desired,
		revision: set.Status.UpdateRevision,
		waiting:  "Waiting for daemon set rollout to finish: %d out of %d new pods have been updated...\n",
		finished: "partitioned roll out complete: %d new pods have been updated...\n",
		allNew:   "DaemonSet rolling update complete %d pods at revision %s...\n",
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		kept := kinds.Kept(rolling.Partition, desired)
		p.keeps, p.want = kept > 0, desired-kept
	}
	return p.status()
}

func unitedDeploymentStatus(u *v1beta1.UnitedDeployment) (string, bool, error) {
	replicas := ptr.Deref(u.Spec.Replicas, 1)
	p := partitioned{
		kind: "UnitedDeployment", generation: u.Generation, observed: u.Status.ObservedGeneration,
		want: replicas, updated: u.Status.UpdatedReplicas, ready: u.Status.ReadyReplicas, replicas: replicas,
		revision: u.Status.CurrentRevision,
		waiting:  "Waiting for partitioned roll out to finish: %d out of %d new pods have been updated...\n",
		finished: "partitioned roll out complete: %d new pods have been updated...\n",
		allNew:   "UnitedDeployment rolling update complete %d pods at revision %s...\n",
	}
	for _, subset := range u.Status.SubsetStatuses {
		kept := min(max(subset.Partition, 0), subset.Replicas)
		p.keeps, p.want = p.keeps || kept > 0, p.want-kept
	}
	return p.status()
}

func sidecarSetStatus(set *v1beta1.SidecarSet) (string, bool, error) {
	matched := set.Status.MatchedPods
	p := partitioned{
		kind: "SidecarSet", generation: set.Generation, observed: set.Status.ObservedGeneration,
		want: matched, updated: set.Status.UpdatedPods, ready: set.Status.ReadyPods, replicas: matched,
		revision: set.Status.LatestRevision,
		waiting:  "Waiting for partitioned roll out to finish: %d out of %d pods have been updated...\n",
		finished: "partitioned roll out complete: %d pods have been updated...\n",
		allNew:   "SidecarSet rolling update complete %d pods at revision %s...\n",
	}
	if partition := set.Spec.UpdateStrategy.Partition; partition != nil {
		kept := kinds.Kept(partition, matched)
		p.keeps, p.want = kept > 0, matched-kept
	}
	return p.status()
}

func broadcastJobStatus(job *v1beta1.BroadcastJob) (string, bool, error) {
	s := job.Status
	switch s.Phase {
	case v1beta1.PhaseCompleted:
		return fmt.Sprintf("BroadcastJob complete: %d of %d pods succeeded\n", s.Succeeded, s.Desired), true, nil
	case v1beta1.PhaseFailed:
		return "", false, fmt.Errorf("job %s failed: %d of %d pods succeeded, %d failed",
			job.Name, s.Succeeded, s.Desired, s.Failed)
	default:
		return fmt.Sprintf("Waiting for BroadcastJob to finish: %d of %d pods succeeded, %d active, %d failed\n",
			s.Succeeded, s.Desired, s.Active, s.Failed), false, nil
	}
}

// kruiseRolloutStatus reads the phase of a Rollout of rollouts.kruise.io.
func kruiseRolloutStatus(o *unstructured.Unstructured) (string, bool, error) {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	message, _, _ := unstructured.NestedString(o.Object, "status", "message")
	if observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); observed < o.GetGeneration() {
		return "Waiting for Rollout spec update to be observed...\n", false, nil
	}
	if phase == "Healthy" {
		return fmt.Sprintf("rollout %s is healthy\n", o.GetName()), true, nil
	}
	return fmt.Sprintf("Waiting for rollout to finish: %s: %s\n", phase, message), false, nil
}
