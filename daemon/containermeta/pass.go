package containermeta

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/containers"
	"github.com/kruisekit/kruisekit/daemon/internal/stopping"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

// The pauses between attempts with one container that fail. What cannot be read in an hour never can be; what cannot be
// stopped is tried now and then.
const (
	leastTrial  = 3 * time.Second
	longestRead = 30 * time.Minute
	longestStop = 10 * time.Minute
	// mostReads take an hour.
	mostReads = 11
	// catchUp is how long a kubelet gets to see what has changed in a pod.
	catchUp = 3 * time.Second
)

// pass looks at one pod once.
type pass struct {
	*Reconciler
	*memory

	name types.NamespacedName
	now  time.Time
	// runtime that the pod's containers run in.
	runtime Runtime
	// after is when to look again; 0 for when something happens.
	after time.Duration
}

// again looks again at some time, or sooner.
func (p *pass) again(at time.Time) {
	p.after = passes.Sooner(p.after, max(at.Sub(p.now), time.Millisecond))
}

// describe does what there is to do about the pod.
func (p *pass) describe(ctx context.Context, pod *corev1.Pod) error {
	if !p.find(pod) {
		return nil
	}
	// What is over now is over in what the runtime says afterwards.
	p.settle()
	busy := p.busy()
	found, err := p.runtime.Containers(ctx, cri.Query{PodUID: string(pod.UID)})
	if err != nil {
		return err
	}
	p.calm(pod, p.now)
	view := containerrestart.View{
		Pod: pod, Containers: containers.Of(p.runtime.Name(), found), Env: !p.options.NoEnv,
		Environments: p.environments, Stopping: busy,
	}
	p.trim(view.Containers)
	is, err := containerrestart.Describe(view)
	if err != nil {
		return err
	}
	if len(is.Read) > 0 {
		p.read(ctx, pod, is.Read)
		if is, err = containerrestart.Describe(view); err != nil {
			return err
		}
	}
	if is.Annotation != "" {
		if err := p.annotate(ctx, pod, is.Annotation); err != nil {
			return err
		}
	}
	binding.LogNotes(ctx, is.Notes)
	if len(is.Restart) == 0 {
		return nil
	}
	return p.restart(ctx, view)
}

// find says whether the pod's containers run in a runtime of ours. Nothing may run yet.
func (p *pass) find(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if name, _, ok := strings.Cut(pod.Status.ContainerStatuses[i].ContainerID, "://"); ok {
			p.runtime = p.runtimes[name]
			break
		}
	}
	return p.runtime != nil
}

// settle takes note of what has become of containers that were to be stopped.
func (p *pass) settle() {
	for k, outcome := range p.workers.Known() {
		if k.pod != p.name || !outcome.Done {
			continue
		}
		if outcome.Err == nil {
			delete(p.unstopped, k.containerID)
		} else {
			p.unstopped[k.containerID] = p.unstopped[k.containerID].fail(p.now, longestStop)
		}
		p.workers.Forget(k)
	}
}

// busy are the containers that are not to be stopped now: they are being, or could not be a moment ago.
func (p *pass) busy() []string {
	var ids []string
	for k := range p.workers.Known() {
		if k.pod == p.name {
			ids = append(ids, k.containerID)
		}
	}
	for id, t := range p.unstopped {
		if t.next.After(p.now) {
			ids = append(ids, id)
			p.again(t.next)
		}
	}
	return ids
}

// trim forgets containers that are gone.
func (p *pass) trim(there []containerrestart.Container) {
	gone := func(id string) bool {
		return !slices.ContainsFunc(there, func(c containerrestart.Container) bool { return c.ID == id })
	}
	maps.DeleteFunc(p.environments, func(id string, _ map[string]string) bool { return gone(id) })
	maps.DeleteFunc(p.unread, func(id string, _ trial) bool { return gone(id) })
	maps.DeleteFunc(p.unstopped, func(id string, _ trial) bool { return gone(id) })
}

// annotate writes the annotation, through the status subresource of the pod.
func (p *pass) annotate(ctx context.Context, pod *corev1.Pod, text string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]string{kruise.RuntimeContainerMetaKey: text},
	}})
	if err != nil {
		return fmt.Errorf("encode annotation: %w", err)
	}
	written := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err = p.api.Client.Status().Patch(ctx, written, client.RawPatch(types.StrategicMergePatchType, body))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // it is gone, or another one has its name
	case err != nil:
		return fmt.Errorf("write annotation of pod %s: %w", p.name, err)
	}
	p.writes.Patched(p.name, written)
	p.again(p.now.Add(ledger.Patience)) // the cache may never show it
	return nil
}

// restart has containers stopped that run with an environment from before. The pod is read once more, past the cache: a
// container may have started with values that are newer than those in it.
func (p *pass) restart(ctx context.Context, view containerrestart.View) error {
	pod, err := stored.Find[corev1.Pod](ctx, p.api.Live, p.name)
	if err != nil || pod == nil || p.own(pod) == nil || pod.UID != view.Pod.UID {
		return err
	}
	if calm := p.calm(pod, p.now); calm.After(p.now) {
		p.again(calm)
		return nil
	}
	view.Pod = pod
	is, err := containerrestart.Describe(view)
	if err != nil {
		return err
	}
	for _, k := range is.Restart {
		i := slices.IndexFunc(view.Containers, func(c containerrestart.Container) bool { return c.ID == k.ContainerID })
		runtime, id := p.runtime, k.ContainerID[strings.Index(k.ContainerID, "://")+len("://"):]
		p.workers.Begin(ctx, attempt{p.name, k.ContainerID}, stopping.Order{
			Kill: k, Runtime: runtime,
			Object: stopping.ContainerOf(view.Containers[i].Pod, &pod.Spec, k.Container),
			Moot: func(ctx context.Context) bool {
				found, err := runtime.Containers(ctx, cri.Query{ID: id})
				return err == nil && !slices.ContainsFunc(found, func(c cri.Container) bool { return c.State == cri.Running })
			},
		})
	}
	return nil
}
