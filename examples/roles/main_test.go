package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/rig/operatortest"
)

// All roles roll in place, each within its own bound, also where the process dies at each third of its writes.
func TestRollout(t *testing.T) {
	for at := 0; ; at += 3 {
		w := newWorld(t)
		before := operatortest.UIDs(w.pods)
		w.down = map[string]int{"router": 1, "prefill": 1, "decode": 2}
		w.process.DieAt(at)
		w.change(func(r *Role) { r.Template = operatortest.Template(r.Name + ":2") })
		w.Eventually(w.unsettled)
		if after := operatortest.UIDs(w.pods); !maps.Equal(before, after) {
			t.Errorf("dead at %d: pods were recreated: before %v, after %v", at, before, after)
		}
		if w.process.Written() < at {
			break
		}
	}
}

// A change of one role leaves the pods of the others in traffic.
func TestOneRole(t *testing.T) {
	for k, name := range []string{"router", "prefill", "decode"} {
		w := newWorld(t)
		w.down = map[string]int{name: int(w.service.Spec.Roles[k].MaxUnavailable)}
		w.change(func(r *Role) { r.Template = operatortest.Template(r.Name + ":2") }, name)
		w.Eventually(w.unsettled)
	}
}

// A change that is not possible in place recreates the pods of its role, one after the other, and no others.
func TestRecreate(t *testing.T) {
	for at := 0; ; at += 3 {
		name := []string{"router", "prefill"}[at%2]
		w := newWorld(t)
		before := operatortest.UIDs(w.pods)
		w.down = map[string]int{name: 1}
		w.process.DieAt(at)
		w.change(func(r *Role) {
			r.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
		}, name)
		w.Eventually(w.unsettled)
		for pod, uid := range operatortest.UIDs(w.pods) {
			if got, want := uid != before[pod], strings.HasPrefix(pod, "chat-"+name); got != want {
				t.Errorf("dead at %d: %s was recreated: %t, want %t", at, pod, got, want)
			}
		}
		if w.process.Written() < at {
			break
		}
	}
}

// A role that does not start holds no other one, and its fix comes to it.
func TestBroken(t *testing.T) {
	w := newWorld(t)
	w.down = map[string]int{"prefill": 1, "decode": 2}
	w.change(func(r *Role) { r.Template = operatortest.Template("prefill:broken") }, "prefill")
	w.Still()
	if image := w.pods["chat-prefill-0"].Spec.Containers[0].Image; image != "prefill:broken" {
		t.Fatalf("prefill has %s", image)
	}
	w.change(func(r *Role) { r.Template = operatortest.Template("decode:2") }, "decode")
	w.Still()
	for i := range 3 {
		pod := w.pods[fmt.Sprintf("chat-decode-%d", i)]
		if image := pod.Spec.Containers[0].Image; image != "decode:2" || !operatortest.Serves(pod) {
			t.Errorf("%s has %s", pod.Name, image)
		}
	}
	w.change(func(r *Role) { r.Template = operatortest.Template("prefill:3") }, "prefill")
	w.Eventually(w.unsettled)
}

// Roles change their size and their order, come and go. The pods of the others stay.
func TestRoles(t *testing.T) {
	changes := map[string]func(*Inference){
		"more":      func(s *Inference) { s.Spec.Roles[1].Replicas = 4 },
		"less":      func(s *Inference) { s.Spec.Roles[0].Replicas = 1 },
		"order":     func(s *Inference) { slices.Reverse(s.Spec.Roles) },
		"first one": func(s *Inference) { s.Spec.Roles = slices.Insert(s.Spec.Roles, 0, role("encode")) },
		"last one":  func(s *Inference) { s.Spec.Roles = append(s.Spec.Roles, role("encode")) },
		"no router": func(s *Inference) { s.Spec.Roles = s.Spec.Roles[1:] },
		"no decode": func(s *Inference) { s.Spec.Roles = s.Spec.Roles[:2] },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := operatortest.UIDs(w.pods)
			w.down = map[string]int{"encode": 2, "prefill": 2}
			objects.Change(w.Model, w.service, change)
			w.Eventually(w.unsettled)
			for pod, uid := range operatortest.UIDs(w.pods) {
				if was, known := before[pod]; known && was != uid {
					t.Errorf("%s was recreated", pod)
				}
			}
		})
	}
}

func role(name string) Role {
	return Role{Name: name, Replicas: 2, MaxUnavailable: 1, Template: operatortest.Template(name + ":1")}
}

// A pod that fails, or is deleted, is recreated alone.
func TestGone(t *testing.T) {
	for _, name := range []string{"chat-router-0", "chat-decode-2"} {
		w := newWorld(t)
		before := operatortest.UIDs(w.pods)
		if err := w.Server.Delete(t.Context(), w.pods[name]); err != nil {
			t.Fatal(err)
		}
		w.Eventually(func() error {
			if operatortest.UIDs(w.pods)[name] == before[name] {
				return fmt.Errorf("%s is the same", name)
			}
			return w.unsettled()
		})
		for pod, uid := range operatortest.UIDs(w.pods) {
			if got, want := uid != before[pod], pod == name; got != want {
				t.Errorf("%s is gone: %s was recreated: %t", name, pod, got)
			}
		}
	}
}

// change changes some roles, or all.
func (w *world) change(change func(*Role), names ...string) {
	w.Helper()
	objects.Change(w.Model, w.service, func(s *Inference) {
		for k := range s.Spec.Roles {
			if r := &s.Spec.Roles[k]; len(names) == 0 || slices.Contains(names, r.Name) {
				change(r)
			}
		}
	})
}
