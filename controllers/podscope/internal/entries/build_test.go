package entries_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	evanphx "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podscope/internal/entries"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

type (
	configuration = admissionregistrationv1.MutatingWebhookConfiguration
	entry         = admissionregistrationv1.MutatingWebhook
)

const (
	recordKey = "kruisekit.dev/pod-scope"
	name      = "pods"
)

// ground is the configurations as an API server has them, and a process that keeps them.
type ground struct {
	*testing.T
	entries.Observation

	policy entries.Policy
	state  entries.State
	// version of the next write, and the writes so far.
	version, writes int
	// announced are the notes of the writes, and notes those of the last pass.
	announced, notes []note.Note
}

func newGround(t *testing.T) *ground {
	return &ground{
		T: t, policy: entries.Policy{Configuration: name, Client: served("").ClientConfig},
		Observation: entries.Observation{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Main: named("main", served("ca"))},
	}
}

// served is an entry of the service with a CA.
func served(ca string) entry {
	c := scope.Reach{Namespace: "n", Service: "s"}.Client()
	if ca != "" {
		c.CABundle = []byte(ca)
	}
	return entry{Name: "m.kb.io", ClientConfig: c}
}

func named(name string, all ...entry) *configuration {
	return &configuration{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}, Webhooks: all}
}

// wanted is a planned entry.
func wanted(name, condition string) entry {
	return entry{
		Name: name, MatchConditions: []admissionregistrationv1.MatchCondition{{Name: scope.Selected, Expression: condition}},
		FailurePolicy: ptr.To(admissionregistrationv1.Fail), TimeoutSeconds: ptr.To[int32](10),
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist,
		}}},
		ClientConfig: served("").ClientConfig,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
			},
		}},
	}
}

// want sets the planned entries.
func (g *ground) want(all ...entry) *ground {
	g.Want.Entries = all
	return g
}

// next makes one pass, and its write. It reports the patch; nil for none.
func (g *ground) next() *write.Write {
	g.Helper()
	pass, err := entries.Next(g.Observation, g.state, g.policy)
	if err != nil {
		g.Fatal(err)
	}
	again, err := entries.Next(g.Observation, g.state, g.policy)
	if err != nil || fmt.Sprint(again.Notes, again.RequeueAfter) != fmt.Sprint(pass.Notes, pass.RequeueAfter) {
		g.Errorf("the same observation gives another pass: %v %v", again, err)
	}
	g.state, g.notes = pass.State, pass.Notes
	if pass.Write == nil {
		return nil
	}
	g.state, g.announced = pass.Written, append(g.announced, pass.Announce...)
	g.writes++
	g.send(pass.Write)
	return pass.Write
}

// settle makes passes until nothing is written.
func (g *ground) settle() *ground {
	g.Helper()
	for range 5 {
		if g.next() == nil {
			return g
		}
		g.Now = g.Now.Add(time.Second)
	}
	g.Fatal("the passes do not end")
	return g
}

// send does what an API server does with a write.
func (g *ground) send(w *write.Write) {
	g.Helper()
	into := &g.Pods
	if w.Object.GetName() != name {
		into = &g.Provisional
	}
	g.version++
	result := &configuration{}
	if w.Verb == write.Create {
		if *into != nil {
			g.Fatal("a configuration that exists is created")
		}
		w.Object.(*configuration).DeepCopyInto(result)
	} else {
		data, err := w.Data()
		if err != nil {
			g.Fatal(err)
		}
		decoded, err := evanphx.DecodePatch(data)
		if err != nil {
			g.Fatal(err)
		}
		before, err := json.Marshal(*into)
		if err != nil {
			g.Fatal(err)
		}
		after, err := decoded.Apply(before)
		if err != nil {
			g.Fatalf("%v: %s", err, data)
		}
		if err := json.Unmarshal(after, result); err != nil {
			g.Fatal(err)
		}
	}
	result.ResourceVersion = fmt.Sprintf("w%d", g.version)
	*into = result
}

// edit is a write of another writer.
func (g *ground) edit(change func(*configuration)) {
	c := g.Pods.DeepCopy()
	change(c)
	g.version++
	c.ResourceVersion = fmt.Sprintf("e%d", g.version)
	g.Pods = c
}

// codes returns those of notes.
func codes(all []note.Note) []string {
	var out []string
	for _, n := range all {
		out = append(out, n.Code)
	}
	return out
}

func newSet(name string, generation int64) *appsv1beta1.SidecarSet {
	set := &appsv1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name), Generation: generation,
	}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	return set
}

// untyped returns sets as the cache has them.
func untyped(t *testing.T, sets ...*appsv1beta1.SidecarSet) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, set := range sets {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &unstructured.Unstructured{Object: content})
	}
	return all
}

// provisionalOf returns the provisional entry of a set.
func provisionalOf(t *testing.T, set *appsv1beta1.SidecarSet) entry {
	t.Helper()
	e, err := scope.Provisional(scope.Input{Namespace: "n", Client: scope.Reach{Namespace: "n", Service: "s"}.Client()},
		set)
	if err != nil || e == nil {
		t.Fatal(e, err)
	}
	return *e
}
