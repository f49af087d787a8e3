//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// foretold is what plan -o json prints.
type foretold struct {
	From string `json:"from"`
	To   string `json:"to"`
	Pods []struct {
		Name       string            `json:"name"`
		Fate       string            `json:"fate"`
		Containers []string          `json:"containers"`
		Images     map[string]string `json:"images"`
	} `json:"pods"`
	Batches  []struct{ Pods []string } `json:"batches"`
	Timeline []struct {
		Available int `json:"available"`
	} `json:"timeline"`
	Duration int `json:"duration"`
}

// change is a change of a workload, which is forecast before it is applied.
type change struct {
	why string
	// before and after are manifests.
	before, after string
	replicas      int
	// exit is the exit code of plan.
	exit int
	// beside is applied first.
	beside string
	// inTurn says that the batches do not depend on how fast pods restart: each has one pod, or there is one of all.
	inTurn bool
}

// changes are by name; the object of each is web.
func changes() map[string]change {
	image := strings.NewReplacer("plugin/web:1", "plugin/web:2")
	gate := func(manifest string) string {
		return strings.Replace(manifest, "      containers:", "      readinessGates: [{conditionType: InPlaceUpdateReady}]\n"+
			"      containers:", 1)
	}
	env := strings.NewReplacer(`ports: [`, `env: [{name: A, value: b}], ports: [`)
	clones := func(more string) string {
		return workload(kruiseApps, "CloneSet", "web", "replicas: 4\n  updateStrategy: {rollingUpdate: {"+
			"podUpdatePolicy: InPlaceIfPossible, "+more+"}}")
	}
	sets := gate(workload(kruiseApps, "StatefulSet", "web", "replicas: 4\n  podManagementPolicy: Parallel\n"+
		"  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1, partition: 2}}"))
	daemons := workload(kruiseApps, "DaemonSet", "web",
		"updateStrategy: {rollingUpdate: {rollingUpdateType: InPlaceIfPossible, maxUnavailable: 1}}")
	native := strings.Replace(workload("apps/v1", "StatefulSet", "web", "replicas: 3\n  podManagementPolicy: Parallel\n"+
		"  updateStrategy: {type: OnDelete}"), "{name: web}",
		`{name: web, annotations: {kruisekit.dev/rollout: '{"maxUnavailable":1,"partition":1}'}}`, 1)
	side := `
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: NAMESPACE}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
  selector: {matchLabels: {app: web}}
  updateStrategy: {type: RollingUpdate, maxUnavailable: 1, partition: 1}
  containers:
  - {name: side, image: "plugin/web:1"}
`
	return map[string]change{
		"CloneSet, image": {
			why: "in place, one by one, but for the partition", before: clones("maxUnavailable: 1, partition: 1"),
			after: image.Replace(clones("maxUnavailable: 1, partition: 1")), replicas: 4, exit: 2, inTurn: true,
		},
		"CloneSet, image, all at once": {
			why: "one batch", before: clones(`maxUnavailable: "100%"`),
			after: image.Replace(clones(`maxUnavailable: "100%"`)), replicas: 4, exit: 2, inTurn: true,
		},
		"CloneSet, environment": {
			why: "recreated one by one", before: clones("maxUnavailable: 1"),
			after: env.Replace(clones("maxUnavailable: 1")), replicas: 4, exit: 3, inTurn: true,
		},
		"CloneSet, label of the template": {
			why: "in place without a restart", before: clones("maxUnavailable: 1"),
			after:    strings.Replace(clones("maxUnavailable: 1"), "labels: {app: web}", "labels: {app: web, tier: a}", 1),
			replicas: 4,
		},
		"CloneSet, fewer replicas": {
			why: "deleted", before: clones("maxUnavailable: 1"),
			after: strings.Replace(clones("maxUnavailable: 1"), "replicas: 4", "replicas: 2", 1), replicas: 4, exit: 3,
		},
		"StatefulSet, partition": {
			why: "in place from the highest ordinal on", before: sets, after: image.Replace(sets), replicas: 4, exit: 2,
			inTurn: true,
		},
		"StatefulSet, environment": {
			why: "recreated from the highest ordinal on", before: sets, after: env.Replace(sets), replicas: 4, exit: 3,
			inTurn: true,
		},
		"DaemonSet, image": {
			why: "in place, a node at a time", before: daemons, after: image.Replace(daemons), replicas: nodes, exit: 2,
			inTurn: true,
		},
		"DaemonSet, environment": {
			why: "recreated, a node at a time", before: daemons, after: env.Replace(daemons), replicas: nodes, exit: 3,
			inTurn: true,
		},
		"SidecarSet, image": {
			why: "the sidecar alone, but for the partition", beside: side, before: clones("maxUnavailable: 1"),
			after: image.Replace(side), replicas: 4, exit: 2, inTurn: true,
		},
		"StatefulSet of apps, image": {
			why: "in place by an annotation", before: native, after: image.Replace(native), replicas: 3, exit: 2, inTurn: true,
		},
		"StatefulSet of apps, environment": {
			why: "evicted by an annotation", before: native, after: env.Replace(native), replicas: 3, exit: 3, inTurn: true,
		},
	}
}

// testForecasts compares forecasts with what happens on nodes.
func (p *plugin) testForecasts(t *testing.T) {
	var pods, equal, ordered atomic.Int32
	t.Run("of", func(t *testing.T) {
		for name, c := range changes() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				n := p.testForecast(t, c)
				if pods.Add(int32(n)); !t.Failed() {
					equal.Add(1)
					if c.inTurn {
						ordered.Add(1)
					}
				}
			})
		}
	})
	t.Logf("forecasts that came true: %d of %d changes, with the fates of %d pods and the batches of %d changes",
		equal.Load(), len(changes()), pods.Load(), ordered.Load())
}

// testForecast returns of how many pods it has compared the fate.
func (p *plugin) testForecast(t *testing.T, c change) int {
	s := p.space(t)
	in := func(manifest string) string { return strings.ReplaceAll(manifest, "NAMESPACE", s.namespace) }
	if c.beside != "" {
		s.apply(t, in(c.beside))
		t.Cleanup(func() { _, _ = s.Kubectl(context.WithoutCancel(t.Context()), "delete", "sidecarset", s.namespace) })
	}
	s.apply(t, in(c.before))
	before := s.pods(t, "web", c.replicas)
	s.rolledOut(t, in(c.before))
	if c.beside != "" {
		s.rolledOut(t, in(c.beside))
	}

	var f foretold
	text := s.exits(t, c.exit, in(c.after), "plan", "-o", "json", "-f", "-").out
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	for name, is := range s.pods(t, "web", c.replicas) {
		if gocmp.Diff(is, before[name], gocmp.AllowUnexported(onePod{})) != "" {
			t.Errorf("the forecast has changed pod %s", name)
		}
	}
	seen := s.observe(t)
	begin := time.Now()
	s.apply(t, in(c.after))
	s.rolledOut(t, in(c.after))
	left := 0
	for _, pod := range f.Pods {
		if pod.Fate != "Deleted" {
			left++
		}
	}
	after := s.pods(t, "web", left)
	took := time.Since(begin)
	happened := seen()

	fates := f.fates()
	if diff := gocmp.Diff(fates, fatesOf(before, after, f.To)); diff != "" {
		t.Errorf("%s: fates (-forecast +happened):\n%s", c.why, diff)
	}
	if want, got := f.batches(), happened.batches(before); c.inTurn && !slices.EqualFunc(want, got, slices.Equal) {
		t.Errorf("%s: batches are %v, forecast %v", c.why, got, want)
	}
	// Where nothing restarts, a CloneSet takes pods out of traffic for the moment of the write, which no forecast counts.
	if least, why := happened.available(before); least < f.available() && c.exit > 0 {
		t.Errorf("%s: %d pods were ready, forecast %d: %s", c.why, least, f.available(), why)
	}
	t.Logf("%s: forecast %ds, took %s, batches %d", c.why, f.Duration, took.Round(time.Second/10), len(f.Batches))
	return len(fates)
}

// rolledOut waits for the end of the rollout of an object.
func (s *space) rolledOut(t *testing.T, manifest string) {
	t.Helper()
	switch {
	case strings.Contains(manifest, "kruisekit.dev/rollout"):
		eventually(t, func(context.Context) error {
			generation := s.field(t, "statefulsets.apps/web", ".metadata.generation")
			if seen := s.field(t, "statefulsets.apps/web", ".status.observedGeneration"); seen != generation {
				return fmt.Errorf("generation %s of %s", seen, generation)
			}
			revision := s.field(t, "statefulsets.apps/web", ".status.updateRevision")
			status := s.field(t, "statefulsets.apps/web", `.metadata.annotations.kruisekit\.dev/rollout-status`)
			if !strings.Contains(status, `"state":"Complete"`) || !strings.Contains(status, revision) {
				return fmt.Errorf("revision %s, status %s", revision, status)
			}
			return nil
		})
	default:
		s.exits(t, 0, manifest, "rollout", "status", "--timeout=2m", "-f", "-")
	}
}

// fates are those of the pods that exist, as one line each.
func (f foretold) fates() map[string]string {
	fates := map[string]string{}
	for _, pod := range f.Pods {
		if pod.Fate == "Created" {
			continue
		}
		_, name, found := strings.Cut(pod.Name, "/")
		if !found {
			name = pod.Name
		}
		fates[name] = pod.Fate
		if pod.Fate == "InPlace" {
			fates[name] = fmt.Sprintf("InPlace, restarts %v, images %v", pod.Containers, pod.Images)
		}
	}
	return fates
}

// fatesOf are those that pods had, in the words of a forecast.
func fatesOf(before, after map[string]onePod, revision string) map[string]string {
	fates := map[string]string{}
	for name, was := range before {
		is, has := after[name]
		restarted, images := []string{}, map[string]string{}
		for c, n := range is.restarts {
			if n > was.restarts[c] {
				restarted = append(restarted, c)
			}
			if is.images[c] != was.images[c] {
				images[c] = is.images[c]
			}
		}
		slices.Sort(restarted)
		switch {
		case (!has || is.uid != was.uid) && len(after) < len(before):
			fates[name] = "Deleted"
		case !has || is.uid != was.uid:
			fates[name] = "Recreated"
		case len(restarted)+len(images) > 0 || is.revision != was.revision:
			fates[name] = fmt.Sprintf("InPlace, restarts %v, images %v", restarted, images)
		case is.revision != "" && strings.HasSuffix(revision, is.revision):
			fates[name] = "Unchanged"
		default:
			fates[name] = "Kept"
		}
	}
	return fates
}

// batches are the names of the pods of each batch.
func (f foretold) batches() [][]string {
	var all [][]string
	for _, batch := range f.Batches {
		var names []string
		for _, name := range batch.Pods {
			_, after, found := strings.Cut(name, "/")
			names = append(names, cmp.Or(map[bool]string{true: after}[found], name))
		}
		slices.Sort(names)
		all = append(all, names)
	}
	return all
}

// available is how many pods the forecast leaves available.
func (f foretold) available() int {
	least := len(f.Pods)
	for _, m := range f.Timeline {
		least = min(least, m.Available)
	}
	return least
}

// history are the pods of a namespace as they changed.
type history []*corev1.Pod

// observe watches pods, until the function is called.
func (s *space) observe(t *testing.T) func() history {
	t.Helper()
	clients, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := clients.CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	from := metav1.ListOptions{ResourceVersion: list.ResourceVersion}
	w, err := clients.CoreV1().Pods(s.namespace).Watch(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	var seen history
	ended := make(chan struct{})
	go func() {
		defer close(ended)

		for e := range w.ResultChan() {
			if pod, is := e.Object.(*corev1.Pod); is {
				if pod = pod.DeepCopy(); e.Type == watch.Deleted {
					pod.Status.Conditions = nil
				}
				seen = append(seen, pod)
			}
		}
	}()
	return func() history {
		w.Stop()
		<-ended
		return seen
	}
}

// batches are the pods whose updates began before the first of them was done.
func (h history) batches(before map[string]onePod) [][]string {
	names := map[types.UID]string{}
	for name, was := range before {
		names[was.uid] = name
	}
	var all [][]string
	begun, done := map[types.UID]bool{}, true
	for _, pod := range h {
		name, old := names[pod.UID]
		is := onePodOf(pod)
		changed := pod.DeletionTimestamp != nil || old && !maps.Equal(is.images, before[name].images)
		switch {
		case old && changed && !begun[pod.UID]:
			begun[pod.UID] = true
			if done {
				all = append(all, nil)
			}
			done = false
			all[len(all)-1] = append(all[len(all)-1], name)
			slices.Sort(all[len(all)-1])
		case !old && is.ready, begun[pod.UID] && is.ready && !maps.Equal(is.restarts, before[name].restarts):
			done = true
		}
	}
	return all
}

// available is the least number of pods that were ready, and the conditions of the pod that was not.
func (h history) available(before map[string]onePod) (least int, why string) {
	is := map[types.UID]bool{}
	for _, was := range before {
		is[was.uid] = true
	}
	least = len(before)
	for _, pod := range h {
		is[pod.UID] = ready(pod) && pod.DeletionTimestamp == nil
		n := 0
		for _, ready := range is {
			if ready {
				n++
			}
		}
		if n < least {
			least, why = n, fmt.Sprintf("pod %s with %+v", pod.Name, pod.Status.Conditions)
		}
	}
	return least, why
}
