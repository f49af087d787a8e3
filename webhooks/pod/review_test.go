package pod_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

const (
	plain = `{metadata: {name: p, labels: {app: web}}, spec: {containers: [{name: main, image: m}]}}`
	two   = `{metadata: {generateName: p-, labels: {app: web}}, spec: {containers: [{name: main, image: m}, {name: side, image: s, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "10"}]}]}}`
	owned = `{metadata: {name: p, ownerReferences: [{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: c, uid: u, controller: true}]}, spec: {containers: [{name: main, image: m}]}}`
	gated = `{metadata: {name: p}, spec: {readinessGates: [{conditionType: KruisePodReady}], containers: [{name: main, image: m}]}}`

	logs = `{selector: {matchLabels: {app: web}}, containers: [{name: log, image: log:1}]}`
	// first comes before what the pod has.
	first = `{selector: {matchLabels: {app: web}}, containers: [{name: first, image: f, podInjectPolicy: BeforeAppContainer}]}`
)

// What becomes of a pod, in a few words: its containers with their images, its gates.
func TestPods(t *testing.T) {
	cases := map[string]struct {
		why     string
		pod     string
		options pod.Options
		sets    []*appsv1beta1.SidecarSet
		want    []string
	}{
		"nothing": {"no step concerns it", plain, pod.Options{}, nil, []string{"main=m"}},
		"owned": {
			why:  "pods of our own controllers can be taken out of service",
			pod:  owned,
			want: []string{"main=m", "gate KruisePodReady"},
		},
		"all gated": {
			why:     "unless it is asked for",
			pod:     plain,
			options: pod.Options{Readiness: pod.ReadinessOptions{ForAll: true}},
			want:    []string{"main=m", "gate KruisePodReady"},
		},
		"gated before": {
			why:     "a gate is there once",
			pod:     gated,
			options: pod.Options{Readiness: pod.ReadinessOptions{ForAll: true}},
			want:    []string{"main=m", "gate KruisePodReady"},
		},
		"a set": {
			why:  "its containers come after those of the pod",
			pod:  plain,
			sets: []*appsv1beta1.SidecarSet{newSet(t, "a", logs)},
			want: []string{"main=m", "log=log:1"},
		},
		"in an order": {
			why:  "all containers wait, injected ones too",
			pod:  two,
			sets: []*appsv1beta1.SidecarSet{newSet(t, "a", logs)},
			want: []string{"main=m wait 0", "side=s wait 10", "log=log:1 wait 0"},
		},
		"a canary": {
			why: "it takes the place of its base",
			pod: plain,
			sets: []*appsv1beta1.SidecarSet{
				newSet(t, "a", logs), canary(newSet(t, "b", strings.ReplaceAll(logs, "log:1", "log:2")), "a"),
			},
			want: []string{"main=m", "log=log:2"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := hook(t, &shelf{namespaces: map[string]map[string]string{"one": nil}}, c.options, c.sets...)
			req := request(t, "u", c.pod)
			answer := w.Review(t.Context(), req)
			after := patched(t, req, answer)
			same(t, c.why, c.want, describe(t, after))
			// Once more, by another entry and so another request.
			again := request(t, "v", string(after))
			if second := w.Review(t.Context(), again); !second.Allowed || len(second.Patch) > 0 {
				t.Errorf("it is changed once more: %s %v", second.Patch, second.Result)
			}
		})
	}
}

func canary(set *appsv1beta1.SidecarSet, base string) *appsv1beta1.SidecarSet {
	set.Annotations = map[string]string{
		appsv1beta1.SidecarSetCanaryAnnotation: "true", appsv1beta1.SidecarSetBaseAnnotation: base,
	}
	return set
}

func describe(t *testing.T, raw []byte) []string {
	t.Helper()
	p := decode(t, raw)
	var all []string
	for _, c := range p.Spec.Containers {
		text := c.Name + "=" + c.Image
		for _, e := range c.Env {
			if e.Name == "KRUISE_CONTAINER_BARRIER" {
				if want := p.Name + "-barrier"; e.ValueFrom.ConfigMapKeyRef.Name != want {
					t.Errorf("the barrier is %q, want %q", e.ValueFrom.ConfigMapKeyRef.Name, want)
				}
				text += " wait " + strings.TrimPrefix(e.ValueFrom.ConfigMapKeyRef.Key, "p_")
			}
		}
		all = append(all, text)
	}
	for _, g := range p.Spec.ReadinessGates {
		all = append(all, "gate "+string(g.ConditionType))
	}
	return all
}

// What is refused, how, and what is let through with a warning instead.
func TestRefusals(t *testing.T) {
	unreadable := `{selector: {matchLabels: {app: web}, matchExpressions: [{key: x, operator: Near}]}, containers: [{name: log, image: l}]}`
	pinned := `{selector: {matchLabels: {app: web}}, containers: [{name: log, image: l}], injectionStrategy: {revision: {revisionName: gone}}}`
	byLabels := `{selector: {matchLabels: {app: web}}, containers: [{name: log, image: l}], namespaceSelector: {matchLabels: {env: prod}}}`
	mounting := `{selector: {matchLabels: {app: web}}, containers: [{name: log, image: l, volumeMounts: [{name: data, mountPath: /d}]}], volumes: [{name: data, emptyDir: {}}]}`
	down := &shelf{fault: errors.New("the cache is down")}
	cases := map[string]struct {
		why   string
		pod   string
		shelf *shelf
		sets  []*appsv1beta1.SidecarSet
		// code of the refusal, or 0; what it says, or a warning; the field.
		code  int32
		says  []string
		field string
	}{
		"bad pod": {
			why:   "nobody could say what it is",
			pod:   `{spec: {containers: 5}}`,
			code:  400,
			says:  []string{"spec.containers"},
			field: "spec.containers",
		},
		"bad priority": {
			why:   "the field is named",
			pod:   strings.Replace(two, `"10"`, `abc`, 1),
			code:  422,
			says:  []string{"step launch", "spec.containers[1].env[0].value"},
			field: "spec.containers[1].env[0].value",
		},
		"unreadable": {
			why:   "it might mean the pod",
			pod:   plain,
			sets:  []*appsv1beta1.SidecarSet{newSet(t, "a", unreadable)},
			code:  422,
			says:  []string{"step sidecars", "sidecarset a", "spec.selector"},
			field: "sidecarsets[a].spec.selector",
		},
		"unreadable else": {
			why:  "it does not mean the pod, whatever it says",
			pod:  strings.Replace(plain, "web", "db", 1),
			sets: []*appsv1beta1.SidecarSet{newSet(t, "a", unreadable)},
		},
		"unreadable open": {
			why:  "its owner would rather have pods",
			pod:  plain,
			sets: []*appsv1beta1.SidecarSet{open(newSet(t, "a", unreadable))},
			says: []string{"sidecarset a is left out"},
		},
		"all unreadable": {
			why:  "it would stop every pod",
			pod:  plain,
			sets: []*appsv1beta1.SidecarSet{newSet(t, "a", `{selector: {matchExpressions: [{key: x, operator: Near}]}}`)},
		},
		"no revision": {
			why:   "the set asks for it",
			pod:   plain,
			sets:  []*appsv1beta1.SidecarSet{newSet(t, "a", pinned)},
			code:  422,
			says:  []string{"sidecarset a", "gone"},
			field: "sidecarsets[a].spec.injectionStrategy.revision.revisionName",
		},
		"no revision open": {
			why:  "the others are injected all the same",
			pod:  plain,
			sets: []*appsv1beta1.SidecarSet{open(newSet(t, "a", pinned)), newSet(t, "b", first)},
			says: []string{"sidecarset a is left out"},
		},
		"lookup": {
			why:   "the next attempt may succeed",
			pod:   plain,
			shelf: down,
			sets:  []*appsv1beta1.SidecarSet{newSet(t, "a", byLabels)},
			code:  503,
			says:  []string{"step sidecars", "look up namespace one", "the cache is down"},
		},
		"lookup else": {
			why:   "nothing has to be looked up for a pod that is not selected",
			pod:   strings.Replace(plain, "web", "db", 1),
			shelf: down,
			sets:  []*appsv1beta1.SidecarSet{newSet(t, "a", byLabels)},
		},
		"lookup near": {
			"the set is near the pod, and does not select it", plain, down,
			[]*appsv1beta1.SidecarSet{newSet(t, "a", strings.Replace(byLabels, "app: web", "app: web, tier: x", 1))},
			0, nil, "",
		},
		"lookup open": {
			why:   "its owner would rather have pods",
			pod:   plain,
			shelf: down,
			sets:  []*appsv1beta1.SidecarSet{open(newSet(t, "a", byLabels))},
			says:  []string{"sidecarset a is left out"},
		},
		"clash": {
			why:   "two sets cannot have one name",
			pod:   plain,
			sets:  []*appsv1beta1.SidecarSet{newSet(t, "a", logs), newSet(t, "b", logs)},
			code:  422,
			says:  []string{"sidecarset b", "log"},
			field: "sidecarsets[b].spec.containers[0]",
		},
		"clash open": {
			why:  "the one that may be missing is",
			pod:  plain,
			sets: []*appsv1beta1.SidecarSet{open(newSet(t, "a", logs)), newSet(t, "b", logs)},
			says: []string{"sidecarset a is left out"},
		},
		"clash with all": {
			"who must not be missing is not", plain, nil,
			[]*appsv1beta1.SidecarSet{open(newSet(t, "a", logs)), newSet(t, "b", logs), open(newSet(t, "c", logs))},
			0,
			[]string{"a is left out", "c is left out"},
			"",
		},
		"clash with one": {
			"the other one that may be missing has nothing to do with it", plain, nil,
			[]*appsv1beta1.SidecarSet{open(newSet(t, "a", logs)), newSet(t, "b", logs), open(newSet(t, "c", first))},
			0,
			[]string{"sidecarset a is left out"},
			"",
		},
		"another volume": {
			why:  "the container gets what it may not expect",
			pod:  `{metadata: {name: p, labels: {app: web}}, spec: {containers: [{name: main, image: m}], volumes: [{name: data, hostPath: {path: /data}}]}}`,
			sets: []*appsv1beta1.SidecarSet{newSet(t, "a", mounting)},
			says: []string{"sidecarset a: container log gets the volume data of the pod"},
		},
		"replaced": {
			why:  "the pod's owner should know",
			pod:  strings.Replace(plain, "name: main", "name: log", 1),
			sets: []*appsv1beta1.SidecarSet{newSet(t, "a", logs)},
			says: []string{"sidecarset a: ", "log"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := hook(t, c.shelf, pod.Options{}, c.sets...).Review(t.Context(), request(t, "u", c.pod))
			said := strings.Join(answer.Warnings, "\n")
			if c.code != 0 {
				refusedWith(t, answer, c.code, c.field)
				said = answer.Result.Message
			} else if !answer.Allowed {
				t.Fatalf("%s: refused: %+v", c.why, answer.Result)
			}
			if c.says == nil && said != "" {
				t.Errorf("%s: it says %q", c.why, said)
			}
			if n := strings.Count(said, "left out"); n != strings.Count(strings.Join(c.says, "\n"), "left out") {
				t.Errorf("%s: %d sets are left out: %q", c.why, n, said)
			}
			for _, want := range c.says {
				if !strings.Contains(said, want) {
					t.Errorf("%s: %q does not say %q", c.why, said, want)
				}
			}
		})
	}
}

// refusedWith looks for a cause at a field, which is one of the pod p or of a set.
func refusedWith(t *testing.T, answer admission.Response, code int32, field string) {
	t.Helper()
	if answer.Allowed || answer.Result == nil || answer.Result.Code != code {
		t.Fatalf("want a refusal with %d, got %+v", code, answer)
	}
	details := answer.Result.Details
	if field != "" && (details == nil || !slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Field == field
	})) {
		t.Errorf("no cause at %s: %+v", field, details)
	}
	if field != "" && code == http.StatusUnprocessableEntity &&
		(details == nil || details.Kind != "Pod" || !strings.HasPrefix(details.Name, "p")) {
		t.Errorf("it is not the pod that is refused: %+v", details)
	}
	if code > 500 && (details == nil || details.RetryAfterSeconds == 0) {
		t.Errorf("no hint when to try again: %+v", details)
	}
}

// A set that cannot be decoded is known by its selectors.
func TestInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		set  *appsv1beta1.SidecarSet
		code int32
	}{
		"fails":          {newSet(t, "a", logs), 422},
		"may be missing": {open(newSet(t, "a", logs)), 0},
		"another's":      {newSet(t, "a", strings.ReplaceAll(logs, "web", "db")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.set.Spec.Containers = nil
			index := pod.NewIndex()
			index.PutInvalid(c.set, errors.New("spec.containers: a number"))
			w, err := over(pod.SidecarLookups{Sets: index, Namespaces: &shelf{}, Revisions: &shelf{}}, pod.Options{})
			if err != nil {
				t.Fatal(err)
			}
			answer := w.Review(t.Context(), request(t, "u", plain))
			if c.code == 0 != answer.Allowed {
				t.Errorf("%+v", answer.Result)
			}
			if c.code != 0 {
				refusedWith(t, answer, c.code, "sidecarsets[a].spec")
			}
		})
	}
}

// Where sets are not known in time, a pod that needs an answer is refused in the time that the API server waits, and
// the others get a warning.
func TestTimeout(t *testing.T) {
	l := pod.SidecarLookups{
		Sets: pod.NewIndex(), Namespaces: &shelf{}, Revisions: &shelf{}, Filled: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	}
	w, err := over(l, pod.Options{Timeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	req := request(t, "u", plain)
	closed := w.Review(t.Context(), req)
	refusedWith(t, closed, 504, "")
	if !strings.Contains(closed.Result.Message, "step sidecars") {
		t.Errorf("the step is not named: %s", closed.Result.Message)
	}
	answer := serveAt(t, w, pod.OpenPath, req)
	if !answer.Allowed || len(answer.Warnings) != 1 || !strings.Contains(answer.Warnings[0], "step sidecars") {
		t.Errorf("where it may go without: %+v", answer)
	}
	if w, err = over(l, pod.Options{Timeout: time.Hour}); err != nil {
		t.Fatal(err)
	}
	refusedWith(t, serveAt(t, w, pod.Path+"?timeout=20ms", req), 504, "") // the API server says how long it waits
}

// What is not the creation of a pod is let through.
func TestConcerns(t *testing.T) {
	w := hook(t, nil, pod.Options{Readiness: pod.ReadinessOptions{ForAll: true}})
	for name, change := range map[string]func(*admission.Request){
		"an update":     func(r *admission.Request) { r.Operation = admissionv1.Update },
		"a subresource": func(r *admission.Request) { r.SubResource = "eviction" },
		"another kind":  func(r *admission.Request) { r.Resource.Resource = "nodes" },
	} {
		req := request(t, "u", plain)
		change(&req)
		if answer := w.Review(t.Context(), req); !answer.Allowed || answer.Patch != nil {
			t.Errorf("%s: %+v", name, answer)
		}
	}
}

// New and the constructors of steps return an error where the webhook could not answer.
func TestNew(t *testing.T) {
	if _, err := over(pod.SidecarLookups{}, pod.Options{}); err == nil {
		t.Error("nothing to look up anything in")
	}
	if _, err := pod.New(nil, pod.Options{}); err == nil {
		t.Error("no step")
	}
	if _, err := pod.New([]pod.Step{{Name: "x"}}, pod.Options{}); err == nil {
		t.Error("a step without a function")
	}
	if _, err := over(pod.SidecarLookups{Sets: pod.NewIndex(), Namespaces: &shelf{}, Revisions: &shelf{}},
		pod.Options{Timeout: -1}); err == nil {
		t.Error("a timeout below nothing")
	}
}
