package main

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/rig/operatortest"
)

// A rollout changes all members in place, the elected one last, also where the process dies at each third write.
func TestRollout(t *testing.T) {
	for at := 0; ; at += 3 {
		w := newWorld(t)
		before := operatortest.UIDs(w.pods)
		w.elect(fmt.Sprint(at % 5))
		w.process.DieAt(at)
		objects.Change(w.Model, w.db, func(d *Database) { d.Spec.Template = operatortest.Template("db:2") })
		w.Eventually(w.unsettled("2"))
		if after := operatortest.UIDs(w.pods); !maps.Equal(before, after) {
			t.Errorf("dead at %d: members were recreated: before %v, after %v", at, before, after)
		}
		if w.process.Written() < at {
			break
		}
	}
}

// A change that is not possible in place recreates the members, the elected one last. They keep their claims.
func TestRecreate(t *testing.T) {
	for at := 0; ; at += 3 {
		w := newWorld(t)
		before, claims := operatortest.UIDs(w.pods), maps.Clone(w.claims)
		w.elect(fmt.Sprint(at % 5))
		w.process.DieAt(at)
		objects.Change(w.Model, w.db, func(d *Database) {
			d.Spec.Template = operatortest.Template("db:2")
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
		})
		w.Eventually(w.unsettled("2"))
		for name, uid := range operatortest.UIDs(w.pods) {
			if uid == before[name] {
				t.Errorf("dead at %d: %s was not recreated", at, name)
			}
		}
		if !maps.Equal(claims, w.claims) {
			t.Errorf("dead at %d: the claims were %v, and are %v", at, claims, w.claims)
		}
		if w.process.Written() < at {
			break
		}
	}
}

// A member whose pod is gone gets another pod with its claim, and the others stay.
func TestGone(t *testing.T) {
	for _, name := range []string{"db-0", "db-3"} {
		w := newWorld(t)
		before, claims := operatortest.UIDs(w.pods), maps.Clone(w.claims)
		if err := w.Server.Delete(t.Context(), w.pods[name]); err != nil {
			t.Fatal(err)
		}
		w.Eventually(func() error {
			if operatortest.UIDs(w.pods)[name] == before[name] {
				return errors.New("the pod is not gone")
			}
			return w.unsettled("1")()
		})
		for other, uid := range operatortest.UIDs(w.pods) {
			if recreated := uid != before[other]; recreated != (other == name) {
				t.Errorf("%s is gone: %s was recreated: %t", name, other, recreated)
			}
		}
		if !maps.Equal(claims, w.claims) {
			t.Errorf("the claims were %v, and are %v", claims, w.claims)
		}
	}
}

// A member waits for the end of a claim that terminates, and then gets another one.
func TestClaimTerminates(t *testing.T) {
	w := newWorld(t)
	claim := w.claims["data-db-2"].DeepCopy()
	claim.Finalizers = []string{"kubernetes.io/pvc-protection"}
	w.Put(claim)
	if err := errors.Join(w.Server.Delete(t.Context(), claim), w.Server.Delete(t.Context(), w.pods["db-2"])); err != nil {
		t.Fatal(err)
	}
	w.Still()
	if pod := w.pods["db-2"]; pod != nil {
		t.Fatalf("%s was created with a claim that terminates", pod.Name)
	}
	objects.Change(w.Model, claim, func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil })
	w.Eventually(w.unsettled("1"))
	if w.claims["data-db-2"].UID == claim.UID {
		t.Error("the claim is the same")
	}
}

// Members join, and leave.
func TestScale(t *testing.T) {
	w := newWorld(t)
	before := operatortest.UIDs(w.pods)
	for _, members := range []int32{7, 5} {
		w.established = false
		objects.Change(w.Model, w.db, func(d *Database) { d.Spec.Members = members })
		w.Eventually(w.unsettled("1"))
	}
	if after := operatortest.UIDs(w.pods); !maps.Equal(before, after) || len(w.claims) != 7 {
		t.Errorf("before %v, after %v, with %d claims", before, after, len(w.claims))
	}
}
