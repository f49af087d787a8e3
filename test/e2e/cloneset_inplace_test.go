//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// What users know: kubectl, and YAML of the older version.
func (m *deployed) testInPlace(t *testing.T) {
	s, dir := m.newSet(t, "web"), t.TempDir()
	s.apply(t, dir, "old")
	s.waitFor(t, "ready pods", s.all("old", 0))
	before := s.pods(t)
	for name := range before {
		s.sh(t, name, "main", "echo $POD >/scratch/kept && echo $POD >/host/$POD")
	}

	s.apply(t, dir, "new")
	least := len(before)
	s.waitFor(t, "the new image", func(l look) error {
		least = min(least, serving(l.pods))
		return s.all("new", 1)(l)
	})
	if least < 2 {
		t.Errorf("%d of 3 pods were ready, and 1 may be unavailable", least)
	}
	after := s.pods(t)
	sameButFor(t, "main", before, after)
	for name, pod := range after {
		if diff := cmp.Diff(before[name].Spec.Volumes, pod.Spec.Volumes); diff != "" {
			t.Errorf("%s: volumes (-before +after):\n%s", name, diff)
		}
		if got := s.sh(t, name, "main", "cat /scratch/kept /host/$POD"); got != name+"\n"+name {
			t.Errorf("%s: in its volumes is %q", name, got)
		}
		if kept, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(kept) != name+"\n" {
			t.Errorf("%s: on its node is %q, %v", name, kept, err)
		}
	}
	s.told(t, "SuccessfulCreate", 3)
	s.told(t, "SuccessfulUpdatePodInPlace", 3)

	old := &v1alpha1.CloneSet{}
	if err := m.Client.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: s.name}, old); err != nil {
		t.Fatal(err)
	}
	if got := old.Spec.UpdateStrategy.Type; got != v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType ||
		old.Status.UpdatedReadyReplicas != 3 {
		t.Errorf("read back in v1alpha1: type %s, status %+v", got, old.Status)
	}
}

// apply does what `kubectl apply -f` does with the manifest of the older version.
func (s *theSet) apply(t *testing.T, dir, tag string) {
	t.Helper()
	manifest, err := os.ReadFile("testdata/cloneset.v1alpha1.yaml")
	if err != nil {
		t.Fatal(err)
	}
	filled := os.Expand(string(manifest), func(name string) string {
		return map[string]string{"DIR": dir, "MAIN": s.images[tag].Name, "HELPER": s.images["helper"].Name}[name]
	})
	file := filepath.Join(t.TempDir(), "cloneset.yaml")
	if err := os.WriteFile(file, []byte(filled), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Kubectl(t.Context(), "apply", "-n", s.namespace, "-f", file); err != nil {
		t.Fatal(err)
	}
}

// told waits until the events of a reason about the set are as many as wanted.
func (s *theSet) told(t *testing.T, reason string, want int32) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		var events corev1.EventList
		if err := s.Client.List(ctx, &events, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		var n int32
		for _, e := range events.Items {
			if e.Reason == reason && e.InvolvedObject.Kind == "CloneSet" && e.InvolvedObject.Name == s.name &&
				e.Source.Component == "cloneset-controller" {
				n += max(e.Count, 1)
			}
		}
		if n != want {
			return fmt.Errorf("%d events %s, want %d", n, reason, want)
		}
		return nil
	})
}

// Claims stay through an update in place and through the loss of a pod, and go with a pod that the set gives up.
func (m *deployed) testClaims(t *testing.T) {
	s := m.newSet(t, "db")
	s.create(t, 2, func(spec *v1beta1.CloneSetSpec) {
		spec.ScaleStrategy.EnablePVCReuse = true
		spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Mi")}},
			},
		}}
		spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	})
	pods, claims := s.pods(t), s.claims(t)
	for name := range pods {
		s.sh(t, name, "main", "hostname >/data/kept")
	}
	s.roll(t)
	s.waitFor(t, "the new image", s.all("new", 1))
	sameButFor(t, "main", pods, s.pods(t))

	lost := slices.Min(slices.Collect(maps.Keys(pods)))
	s.lose(t, lost)
	s.waitFor(t, "another pod of the same name", s.back(pods[lost]))
	if diff := cmp.Diff(claims, s.claims(t)); diff != "" {
		t.Errorf("claims after an update and a loss (-before +after):\n%s", diff)
	}
	for name := range pods {
		if got := s.sh(t, name, "main", "cat /data/kept"); got != name {
			t.Errorf("%s finds %q in its volume", name, got)
		}
	}

	s.change(t, func(spec *v1beta1.CloneSetSpec) { spec.Replicas = ptr.To(int32(1)) })
	s.waitFor(t, "one pod with one claim", func(l look) error {
		claims := s.claims(t)
		if len(claims) != 1 || len(l.pods) != 1 || serving(l.pods) != 1 {
			return fmt.Errorf("there are %d claims and %d pods, of which %d are ready",
				len(claims), len(l.pods), serving(l.pods))
		}
		for name := range l.pods {
			if _, ok := claims["data-"+name]; !ok {
				return fmt.Errorf("%s has no claim among %v", name, claims)
			}
		}
		return nil
	})
}

// lose deletes a pod, as a user or a node's end does.
func (s *theSet) lose(t *testing.T, name string) {
	t.Helper()
	if err := s.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.namespace, Name: name,
	}}); err != nil {
		t.Fatal(err)
	}
}

// back says what keeps a lost pod from having a successor of its name.
func (s *theSet) back(lost *corev1.Pod) func(look) error {
	return func(l look) error {
		pod := l.pods[lost.Name]
		if len(l.pods) != 2 || pod == nil || pod.UID == lost.UID {
			return fmt.Errorf("pods are %v", slices.Collect(maps.Keys(l.pods)))
		}
		return s.one(pod, "new", 0)
	}
}

// claims are those of the set that are not being deleted, by name.
func (s *theSet) claims(t *testing.T) map[string]types.UID {
	t.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := s.Client.List(t.Context(), &list, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	claims := map[string]types.UID{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			claims[list.Items[i].Name] = list.Items[i].UID
		}
	}
	return claims
}
