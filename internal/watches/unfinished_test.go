package watches_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/apiserver"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/internal/watches/watchestest"
)

type job = v1alpha1.EphemeralJob

// world has jobs whose rule is the label "app" of their selector, and counts the rules that are computed of each job.
type world struct {
	testing.TB
	server   *apiserver.Server
	jobs     *watches.Unfinished[job, string]
	compiled map[string]int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{
		TB:       t,
		server:   apiserver.New(scheme, func() time.Time { return time.Unix(1_800_000_000, 0) }),
		compiled: map[string]int{},
	}
	over := func(j *job) bool { return j.Status.CompletionTime != nil }
	w.jobs = watches.NewUnfinished(v1alpha1.GroupVersion.WithKind("EphemeralJob"), over, func(j *job) (string, error) {
		w.compiled[j.Name]++
		if j.Spec.Selector == nil {
			return "", errors.New("no selector")
		}
		return j.Spec.Selector.MatchLabels["app"], nil
	})
	if err := w.jobs.Index(t.Context(), w.server); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) put(namespace, name, app string, changes ...func(*job)) {
	w.Helper()
	j := &job{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1,
	}}
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	for _, change := range changes {
		change(j)
	}
	if err := w.server.Put(j); err != nil {
		w.Fatal(err)
	}
}

// affected returns the jobs of a namespace that an event of an app affects.
func (w *world) affected(namespace, app string) string {
	w.Helper()
	requests, err := w.jobs.Affected(w.Context(), w.server, namespace, func(rule string) bool { return rule == app })
	if err != nil {
		w.Fatal(err)
	}
	q := &watchestest.Queue{}
	for _, request := range requests {
		q.Add(request)
	}
	return q.Taken()
}

// An event affects the unfinished jobs of its namespace whose rule says so, and no other job.
func TestAffected(t *testing.T) {
	w := newWorld(t)
	end := metav1.NewTime(time.Unix(1, 0))
	w.put("shop", "web", "web")
	w.put("shop", "web-too", "web")
	w.put("shop", "db", "db")
	w.put("shop", "ended", "web", func(j *job) { j.Status.CompletionTime = &end })
	w.put("shop", "deleted", "web", func(j *job) {
		j.DeletionTimestamp, j.Finalizers = &end, []string{"example.com/hold"}
	})
	w.put("shop", "invalid", "web", func(j *job) { j.Spec.Selector = nil })
	w.put("yard", "elsewhere", "web")
	for name, c := range map[string]struct{ namespace, app, want string }{
		"one namespace":      {"shop", "web", "web web-too"},
		"another app":        {"shop", "db", "db"},
		"an unknown app":     {"shop", "cache", ""},
		"another namespace":  {"yard", "web", "elsewhere"},
		"all namespaces":     {"", "web", "elsewhere web web-too"},
		"an empty namespace": {"attic", "web", ""},
	} {
		if got := w.affected(c.namespace, c.app); got != c.want {
			t.Errorf("%s: affects %q, want %q", name, got, c.want)
		}
	}
}

// Any number of events computes the rule of a job once for each of its specs, also where the rule is an error.
func TestRulesAreComputedOnce(t *testing.T) {
	w := newWorld(t)
	status := func(n int32) func(*job) { return func(j *job) { j.Status.Running = n } }
	w.put("shop", "web", "web")
	w.put("shop", "invalid", "", func(j *job) { j.Spec.Selector = nil })
	for i := range 100 {
		w.put("shop", "web", "web", status(int32(i))) // another resourceVersion
		if got := w.affected("shop", "web"); got != "web" {
			t.Fatalf("affects %q", got)
		}
	}
	if w.compiled["web"] != 1 || w.compiled["invalid"] != 1 {
		t.Errorf("100 events computed %v, want each rule once", w.compiled)
	}
	w.put("shop", "web", "db", func(j *job) { j.Generation = 2 })
	if got := w.affected("shop", "web") + w.affected("shop", "db"); got != "web" || w.compiled["web"] != 2 {
		t.Errorf("another spec affects %q after %d rules", got, w.compiled["web"])
	}
	w.put("shop", "web", "cache", func(j *job) { j.UID = "another" })
	if got := w.affected("shop", "cache"); got != "web" || w.compiled["web"] != 3 {
		t.Errorf("another job of the name affects %q after %d rules", got, w.compiled["web"])
	}
}
