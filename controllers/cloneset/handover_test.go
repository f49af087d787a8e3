package cloneset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
)

// dying runs the reconciler in processes that die at their writes.
func (m *model) dying() *podbench.Process {
	process := &podbench.Process{Server: m.Server, Start: func(c client.WithWatch) reconcile.Reconciler {
		return m.reconciler(cloneset.Options{}, c)
	}}
	m.Reconciler = process
	return process
}

func reuse(on bool) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) {
		twoClaims(s)
		s.Spec.ScaleStrategy.EnablePVCReuse = on
	}
}

// claimUIDs returns the UIDs of claims by the id of their pod.
func (m *model) claimUIDs(id string) []types.UID {
	var all []types.UID
	for _, claim := range m.claims() {
		if claim.Labels["apps.kruise.io/cloneset-instance-id"] == id {
			all = append(all, claim.UID)
		}
	}
	return all
}

// The claims of a pod that the set deletes go with the pod, and serve no other pod, also with reuse. The process may
// die at each write. The cost is one write for each claim, before the deletion of the pod.
func TestClaimsGoWithTheDeletedPod(t *testing.T) {
	for _, on := range []bool{true, false} {
		for at := range 6 {
			t.Run(fmt.Sprintf("reuse %t, dies at write %d", on, at), func(t *testing.T) {
				m := newModel(t, cloneset.Options{})
				process := m.dying()
				set := m.create("web", 2, reuse(on))
				m.eventually(set, settled)
				chosen := m.pods(set)[0]
				id := chosen.Name[len("web-"):]
				before := m.claimUIDs(id)
				m.Server.Requests()
				m.change(set, func(s *v1beta1.CloneSet) {
					s.Spec.ScaleStrategy.PodsToDelete, *s.Spec.Replicas = []string{chosen.Name}, 1
				})
				process.DieAt(at)
				m.eventually(set, settled)
				m.Still()
				asked := m.Server.Requests()
				if at == 0 && (len(requests.About(asked, "PATCH persistentvolumeclaims")) != 2 ||
					len(requests.About(asked, "DELETE pods")) != 1) {
					t.Errorf("requests %v", asked)
				}
				m.scale(set, 3)
				m.eventually(set, settled)
				m.Still()
				for _, claim := range m.claims() {
					if slices.Contains(before, claim.UID) {
						t.Errorf("claim %s of the deleted pod still exists; requests %v", claim.Name, asked)
					}
				}
				if own := m.claimsOf(set.UID); len(own) != 6 {
					t.Errorf("claims %v of 3 pods", own)
				}
			})
		}
	}
}

// A pod that a user takes out of the set by a label keeps its claims while it runs, also if the process dies at a
// write. The claims go with the pod, when the user deletes the pod.
func TestClaimsGoWithTheReleasedPod(t *testing.T) {
	for _, on := range []bool{true, false} {
		for at := range 6 {
			t.Run(fmt.Sprintf("reuse %t, dies at write %d", on, at), func(t *testing.T) {
				m := newModel(t, cloneset.Options{})
				process := m.dying()
				set := m.create("web", 2, reuse(on))
				m.eventually(set, settled)
				released := m.pods(set)[0]
				id := released.Name[len("web-"):]
				before := m.claimUIDs(id)
				m.Server.Requests()
				process.DieAt(at)
				m.edit(&released, `{"labels":{"app":"quarantine"}}`)
				m.eventually(set, settled)
				m.Still()
				asked := m.Server.Requests()
				if own := m.claimsOf(set.UID); len(own) != 4 {
					t.Errorf("claims %v of 2 pods", own)
				}
				if m.look(&released); metav1.GetControllerOf(&released) != nil || !slices.Equal(m.claimUIDs(id), before) ||
					len(m.claimsOf(released.UID)) != 2 {
					t.Errorf("the claims of the released pod are %v, were %v; requests %v", m.claimUIDs(id), before, asked)
				}
				if patches := requests.About(asked, "PATCH persistentvolumeclaims"); at == 0 && len(patches) != 2 {
					t.Errorf("requests %v", asked)
				}
				m.delete(released)
				m.RunPods()
				if claims := m.claimUIDs(id); len(claims) > 0 {
					t.Errorf("the claims %v of the released pod outlast it", claims)
				}
			})
		}
	}
}

// A pod whose deletion is refused, and that the user keeps then, has its claims as before: with reuse its successor
// gets them.
func TestClaimsReturnFromAPodThatStays(t *testing.T) {
	refuses := true
	m := newModelWith(t, cloneset.Options{}, func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{Delete: func(
			ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption,
		) error {
			if _, is := o.(*corev1.Pod); is && refuses {
				return errors.New("a policy protects the pod")
			}
			return c.Delete(ctx, o, opts...)
		}})
	})
	set := m.create("web", 2, reuse(true))
	m.eventually(set, settled)
	before := m.claimsOf(set.UID)
	m.scale(set, 1)
	for range 3 {
		m.Reconcile()
	}
	if own := m.claimsOf(set.UID); len(own) != 2 {
		t.Errorf("claims %v are left to the set", own)
	}
	m.scale(set, 2)
	m.Still()
	if own := m.claimsOf(set.UID); !slices.Equal(own, before) {
		t.Errorf("claims %v became %v", before, own)
	}
	m.Idle()
	refuses = false
	m.scale(set, 1)
	m.eventually(set, settled)
	m.Still()
	if own := m.claims(); len(own) != 2 {
		t.Errorf("%d claims of a pod", len(own))
	}
}
