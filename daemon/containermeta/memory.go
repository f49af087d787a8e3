package containermeta

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/write"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/ledger"
)

// memory is what is remembered of a pod from one pass to the next. Passes of one pod come one after the other.
type memory struct {
	uid types.UID
	// annotation is the last one written, and version is the pod's resourceVersion after that; empty once the cache has
	// it.
	annotation, version string
	// writtenAt is when the annotation was written, or read live.
	writtenAt time.Time
	// environments are those that were read, by container ID: of each what comes from the pod.
	environments map[string]map[string]string
	// fed is what feeds environments in the pod, and since when it is that.
	fed   string
	since time.Time
	// unread and unstopped are containers with which something failed, by ID.
	unread, unstopped map[string]trial
}

// trial is something that failed some times in a row, and is tried again at some time.
type trial struct {
	failed int
	next   time.Time
}

// fail is the trial after one more failure: each pause is twice the last, up to most.
func (t trial) fail(now time.Time, most time.Duration) trial {
	pause := leastTrial
	for range t.failed {
		pause = min(2*pause, most)
	}
	return trial{failed: t.failed + 1, next: now.Add(pause)}
}

// remember is what is remembered of a pod; nothing at first.
func (r *Reconciler) remember(name types.NamespacedName, uid types.UID) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memory[name]
	if m == nil || m.uid != uid {
		m = &memory{
			uid: uid, environments: map[string]map[string]string{}, unread: map[string]trial{}, unstopped: map[string]trial{},
		}
		r.memory[name] = m
	}
	return m
}

// forget drops what is known of a pod that is gone, and gives up what is done to it.
func (r *Reconciler) forget(name types.NamespacedName) {
	for k := range r.workers.Known() {
		if k.pod == name {
			r.workers.Forget(k)
		}
	}
	r.waiting.Drop(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memory, name)
}

// calm says when what feeds environments in a pod has been the same for so long that its kubelet has seen it. It sees a
// pod's changes for itself, and may be behind: a container that it starts before has the values of before.
func (m *memory) calm(pod *corev1.Pod, now time.Time) time.Time {
	if fed := feeds(pod); fed != m.fed || m.since.IsZero() {
		m.fed, m.since = fed, now
	}
	return m.since.Add(catchUp)
}

// podNamed is a pod of this node; nil where there is none.
func (r *Reconciler) podNamed(ctx context.Context, from client.Reader, name types.NamespacedName) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := from.Get(ctx, name, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read pod %s: %w", name, err)
	}
	return r.own(pod), nil
}

// asWritten is a pod with what was written to it last, as long as the cache does not have that. After a minute only a
// live read shows whether the cache lags: versions go back where etcd is restored to an older version.
func (p *pass) asWritten(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	if p.version == "" {
		return pod, nil
	}
	if p.shownBy(pod) {
		p.annotation, p.version = "", ""
		return pod, nil
	}
	if p.now.Sub(p.writtenAt) >= ledger.Patience {
		live, err := p.podNamed(ctx, p.live(), p.name)
		if err != nil {
			return nil, err
		}
		p.annotation, p.version = "", ""
		if live == nil || live.UID != pod.UID || live.ResourceVersion == pod.ResourceVersion {
			return pod, nil
		}
		p.annotation, p.version, p.writtenAt = live.Annotations[kruise.RuntimeContainerMetaKey], live.ResourceVersion, p.now
	}
	p.again(p.writtenAt.Add(ledger.Patience)) // the cache may never show it
	pod = pod.DeepCopy()
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[kruise.RuntimeContainerMetaKey] = p.annotation
	return pod, nil
}

// shownBy reports whether a pod is as new as what was written. Versions that cannot be compared are.
func (m *memory) shownBy(pod *corev1.Pod) bool {
	order, err := write.CompareVersions(pod.ResourceVersion, m.version)
	return err != nil || order >= 0
}
