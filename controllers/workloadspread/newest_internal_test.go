package workloadspread

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// live counts reads by kind.
type live struct {
	client.Reader

	reads map[string]int
}

func (l *live) Get(ctx context.Context, name client.ObjectKey, into client.Object, o ...client.GetOption) error {
	l.reads[into.GetObjectKind().GroupVersionKind().Kind]++
	return l.Reader.Get(ctx, name, into, o...)
}

// TestVersionedKinds: a CloneSet knows the newest version itself, and a target without costs needs none.
func TestVersionedKinds(t *testing.T) {
	for name, c := range map[string]struct {
		kind, apiVersion, newest string
		costs                    map[string]string
		reads                    map[string]int
	}{
		"a CloneSet": {
			kind:       "CloneSet",
			apiVersion: "apps.kruise.io/v1beta1",
			newest:     "web-v2",
			costs:      map[string]string{"p-v1": "100", "p-v2": "200"},
			reads:      map[string]int{"CloneSet": 1},
		},
		"a CloneSet that goes back": {
			kind:       "CloneSet",
			apiVersion: "apps.kruise.io/v1beta1",
			newest:     "v1",
			costs:      map[string]string{"p-v1": "200", "p-v2": "100"},
			reads:      map[string]int{"CloneSet": 1},
		},
		"a StatefulSet has no costs": {
			kind:       "StatefulSet",
			apiVersion: "apps/v1",
			costs:      map[string]string{"p-v1": "", "p-v2": ""},
			reads:      map[string]int{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			have, _ := newCluster(t)
			l := &live{have, map[string]int{}}
			r, err := New(have, Options{
				Now: noon, Recorder: have.Server, Live: l, Versioned: []string{"cloneset", "statefulset"},
			})
			if err != nil {
				t.Fatal(err)
			}
			ws, set := spreadOf(1, -1), cloneSet()
			ws.Spec.TargetReference = &appsv1beta1.TargetReference{APIVersion: c.apiVersion, Kind: c.kind, Name: "web"}
			set.Status.UpdateRevision = c.newest
			have.put(ws, set, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "uid-web", Generation: 1,
			}})
			for version := range c.costs {
				pod := spreadPod(version, "a")
				pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = c.apiVersion, c.kind
				pod.Labels = map[string]string{"controller-revision-hash": "web-" + version[2:]}
				pod.Annotations[kruise.MatchedWorkloadSpreadKey] = subset.Text(subset.Match{Name: "spread", Subset: "a"})
				have.put(pod)
			}
			have.show(r)
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{
				Namespace: "shop", Name: "spread",
			}}); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for pod := range c.costs {
				is := &corev1.Pod{}
				if err := have.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: pod}, is); err != nil {
					t.Fatal(err)
				}
				got[pod] = is.Annotations[corev1.PodDeletionCost]
			}
			if diff := cmp.Diff(c.costs, got); diff != "" {
				t.Errorf("costs (-want +got):\n%s", diff)
			}
			if fmt.Sprint(l.reads) != fmt.Sprint(c.reads) {
				t.Errorf("live reads %v, want %v", l.reads, c.reads)
			}
			if versions := have.spread().Status.VersionedSubsetStatuses; len(versions) != 2 {
				t.Errorf("%+v", versions)
			}
		})
	}
}
