//go:build envtest

package sidecarset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/test/objects"
)

// stored creates what was recorded, as if it had been here all the time. Names and selectors are the test's.
func (b *bench) stored(step string) (sets []*v1beta1.SidecarSet) {
	b.Helper()
	var recorded v1beta1.SidecarSetList
	objects.Recorded(b, step+"/sidecarsets.v1beta1.yaml", &recorded)
	owners := map[string]metav1.OwnerReference{}
	for i := range recorded.Items {
		set := &recorded.Items[i]
		status := set.Status
		set.ObjectMeta = metav1.ObjectMeta{
			Name: set.Name, Annotations: set.Annotations, Labels: map[string]string{owner: b.Namespace},
		}
		set.Spec.NamespaceSelector.MatchLabels[corev1.LabelMetadataName] = b.Namespace
		b.add(set)
		set.Status = status
		set.Status.ObservedGeneration = set.Generation
		if err := b.Client.Status().Update(b.Context(), set); err != nil {
			b.Fatal(err)
		}
		owners[set.Name] = *metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind("SidecarSet"))
		sets = append(sets, set)
	}
	var revisions appsv1.ControllerRevisionList
	objects.Recorded(b, step+"/sidecarset-revisions.yaml", &revisions)
	for i := range revisions.Items {
		rev := &revisions.Items[i]
		of, ok := owners[rev.Labels[v1beta1.SidecarSetNameLabel]]
		if !ok {
			continue // of a set that went before this was recorded
		}
		rev.ObjectMeta = metav1.ObjectMeta{
			Namespace: b.Namespace, Name: rev.Name, Labels: rev.Labels, Annotations: rev.Annotations,
			OwnerReferences: []metav1.OwnerReference{of},
		}
		b.add(rev)
	}
	var pods corev1.PodList
	objects.Recorded(b, step+"/pods.yaml", &pods)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Annotations[kruise.SidecarSetInjectedListKey] == "" {
			continue
		}
		status := pod.Status
		pod.ObjectMeta = metav1.ObjectMeta{
			Namespace: b.Namespace, Name: pod.Name, Labels: pod.Labels, Annotations: pod.Annotations,
		}
		b.add(pod)
		pod.Status = status
		if err := b.Client.Status().Update(b.Context(), pod); err != nil {
			b.Fatal(err)
		}
	}
	return sets
}

func (b *bench) add(o client.Object) {
	b.Helper()
	if err := b.Client.Create(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

// TestTakeover starts on what a running reference left: it writes nothing. The recorded names are the cluster's, so
// that the steps take turns.
func TestTakeover(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"1-created", "3-updated"} {
		b := newGround(t)
		sets := b.stored(step)
		if len(b.pods()) != 2 || len(sets) != 2 {
			t.Fatalf("%d pods and %d sets", len(b.pods()), len(sets))
		}
		explained := make(chan string, 100)
		stop := b.reconcile(sidecarset.Options{Explain: explain(explained)}, same)
		for range sets {
			select {
			case <-explained:
			case <-t.Context().Done():
				t.Fatal("nobody looked at the sets")
			}
		}
		b.Still()
		writes := slices.DeleteFunc(b.Asked(), func(request string) bool { return strings.HasPrefix(request, "GET ") })
		if len(writes) != 0 {
			t.Errorf("%s: want nothing written, got %v", step, writes)
		}
		// And it goes on from there: with the history that it has, in one write of the pod.
		for _, set := range sets {
			b.change(set, image("busybox:1.34"))
			b.Until(func() error {
				if b.get(set); set.Status.ObservedGeneration != set.Generation || set.Status.UpdatedPods != 1 {
					return fmt.Errorf("%+v", set.Status)
				}
				return nil
			})
			revs := b.revisions(set)
			if last := revs[len(revs)-1]; last.Revision != int64(len(revs)) || !strings.HasPrefix(last.Name, set.Name+"-") {
				t.Errorf("%s: %s is revision %d", step, last.Name, last.Revision)
			}
		}
		stop()
		for _, set := range sets {
			if err := b.Client.Delete(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}
	}
}
