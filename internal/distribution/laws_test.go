package distribution_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
)

// world has an admin, tenants and faults that do something at random at each turn.
type world struct {
	*testing.T
	*secrets

	rand  *rand.Rand
	clock int
	in    distribution.Input
	spec  v1beta1.ResourceDistributionTargets
	// seen is what the cache shows.
	seen   map[string]distribution.Copy
	faulty bool
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		T: t, secrets: newSecrets(), rand: rand.New(rand.NewPCG(seed, 1)), faulty: true, seen: map[string]distribution.Copy{},
	}
	w.in = distribution.Input{Owner: me, Resource: read(t, plain)}
	for i := range 6 {
		w.in.Namespaces = append(w.in.Namespaces, distribution.Namespace{
			Name: fmt.Sprint("ns-", i), Labels: map[string]string{"group": fmt.Sprint(i % 2)},
		})
	}
	w.in.Namespaces = append(w.in.Namespaces, distribution.Namespace{Name: "kube-system"})
	w.spec = v1beta1.ResourceDistributionTargets{AllNamespaces: true}
	return w
}

func (w *world) namespace() string {
	return w.in.Namespaces[w.rand.IntN(len(w.in.Namespaces))].Name
}

// act is what another client does.
func (w *world) act() {
	w.Helper()
	n := w.namespace()
	switch w.rand.IntN(12) {
	case 0:
		data := []string{`{}`, `{"k":"eA=="}`, `{"k":"eQ=="}`, `{"l":"eQ=="}`}[w.rand.IntN(4)]
		w.in.Resource = read(w.T,
			fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","labels":{"v%d":"x"}},"data":%s}`,
				w.rand.IntN(3), data))
	case 1:
		w.in.Resource = read(w.T,
			fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"type":"a/t%d","immutable":%t}`,
				w.rand.IntN(2), w.rand.IntN(2) == 0))
	case 2:
		w.spec = v1beta1.ResourceDistributionTargets{
			IncludedNamespaces: list(w.namespace(), "absent"), NamespaceSelector: group(fmt.Sprint(w.rand.IntN(3))),
		}
	case 3:
		w.spec = v1beta1.ResourceDistributionTargets{AllNamespaces: true, ExcludedNamespaces: list(w.namespace())}
	case 4:
		delete(w.all, n)
	case 5:
		if w.all[n] == nil {
			w.put(n, func(*corev1.Secret) {}) // a foreign one
		}
	case 6:
		if is := w.all[n]; is != nil && (is.Immutable == nil || !*is.Immutable) {
			w.put(n, func(o *corev1.Secret) {
				o.Data = nil
				if w.rand.IntN(2) == 0 {
					o.Data = map[string][]byte{"theirs": []byte(w.next())}
				}
			})
		}
	case 7:
		if w.all[n] != nil {
			w.put(n, func(o *corev1.Secret) { o.Labels = map[string]string{"theirs": w.next()} })
		}
	case 8:
		if w.all[n] != nil {
			w.put(n, func(o *corev1.Secret) { o.OwnerReferences = nil })
		}
	case 9:
		w.terminating[n] = !w.terminating[n]
		w.sync()
	case 10:
		w.in.Known = nil // the process restarts
	}
}

// sync shows terminating namespaces.
func (w *world) sync() {
	w.in.Namespaces = slices.Clone(w.in.Namespaces)
	for i := range w.in.Namespaces {
		w.in.Namespaces[i].Terminating = w.terminating[w.in.Namespaces[i].Name]
	}
}

// turn runs one pass, with a cache that may lag.
func (w *world) turn() *distribution.Pass {
	w.Helper()
	if !w.faulty || w.rand.IntN(3) > 0 {
		w.seen = w.copies(me)
	}
	w.clock++
	w.in.Targets, w.in.Copies, w.in.Now = selected(w.T, w.spec), w.seen, at(w.clock)
	kept := w.in // of copies
	kept.Namespaces, kept.Copies, kept.Known = slices.Clone(w.in.Namespaces), maps.Clone(w.in.Copies),
		maps.Clone(w.in.Known)
	p := distribution.Plan(w.in)
	if again := distribution.Plan(kept); fmt.Sprintf("%+v", p) != fmt.Sprintf("%+v", again) {
		w.Fatal("two plans of the same input differ")
	}
	w.rand.Shuffle(len(p.Steps), func(i, j int) { p.Steps[i], p.Steps[j] = p.Steps[j], p.Steps[i] })
	for i, step := range p.Steps {
		if w.faulty && w.rand.IntN(10) == 0 {
			continue // not tried
		}
		for n := 0; !step.Ended(); n++ {
			if n > 10 {
				w.Fatalf("a step does not end: %+v", step)
			}
			live, err := w.request(step)
			step = p.Answer(step, live, err)
		}
		p.Steps[i] = step
	}
	w.in.Known = p.Known()
	w.status(p)
	return p
}

// request sends a step, unless it fails, and checks what must never happen.
func (w *world) request(step distribution.Step) (distribution.Object, error) {
	w.Helper()
	before := maps.Clone(w.all)
	if w.faulty && w.rand.IntN(12) == 0 {
		return nil, apierrors.NewInternalError(errors.New("not made"))
	}
	live, err := w.send(w.in.Resource, me, step)
	for n, is := range w.all {
		if old := before[n]; old != nil && old != is && (n != step.Namespace || !me.Controls(old)) {
			w.Fatalf("%s of %s wrote the object in %s", step.Action, step.Namespace, n)
		}
		if before[n] == nil && !w.in.Targets.Match(n, w.labels(n)) {
			w.Fatalf("%s gets a copy and is no target", n)
		}
	}
	for n, old := range before {
		if w.all[n] == nil && !me.Controls(old) {
			w.Fatalf("%s of %s deleted a foreign object in %s", step.Action, step.Namespace, n)
		}
	}
	if w.faulty && err == nil && w.rand.IntN(12) == 0 {
		return nil, apierrors.NewInternalError(errors.New("made, and the answer is lost"))
	}
	return live, err
}

func (w *world) labels(namespace string) map[string]string {
	for _, n := range w.in.Namespaces {
		if n.Name == namespace {
			return n.Labels
		}
	}
	return nil
}

// status checks the counters against the lists.
func (w *world) status(p *distribution.Pass) {
	w.Helper()
	status := p.Status(v1beta1.ResourceDistributionStatus{}, 1, at(w.clock))
	if len(status.Conditions) != 6 || status.Succeeded+status.Failed != status.Desired || status.Succeeded < 0 ||
		status.Failed < 0 {
		w.Fatalf("the status is %+v", status)
	}
	for i, c := range status.Conditions {
		if c.Type != distribution.Conditions()[i] || (c.Status == "False") != (c.Reason == "Succeeded") ||
			(c.Status == "False") != (len(c.FailedNamespaces) == 0) || !slices.IsSorted(c.FailedNamespaces) {
			w.Fatalf("the condition is %+v", c)
		}
	}
}

// settled compares the world with what a simple reading of the spec says.
func (w *world) settled(p *distribution.Pass) {
	w.Helper()
	desired, good := 0, 0
	for _, n := range w.in.Namespaces {
		name := n.Name
		is, target := w.all[name], w.in.Targets.Match(name, n.Labels) && !n.Terminating
		if target {
			desired++
		}
		switch {
		case n.Terminating:
		case !target && is != nil && me.Controls(is):
			w.Fatalf("%s has a copy and is no target", name)
		case target && is == nil:
			w.Fatalf("%s has no copy: %v", name, p.Failures())
		case target && me.Controls(is):
			want := w.in.Resource.Copy(name, me)
			fresh, ok := want.(*corev1.Secret)
			if !ok || !apiequality.Semantic.DeepEqual(fresh.Data, is.Data) || fresh.Type != is.Type ||
				ptr.Deref(fresh.Immutable, false) != ptr.Deref(is.Immutable, false) {
				w.Fatalf("%s has %+v, want %+v", name, is, want)
			}
			for key := range is.Labels {
				if _, wanted := fresh.Labels[key]; !wanted && key != "theirs" {
					w.Fatalf("%s keeps the label %s of an earlier resource", name, key)
				}
			}
			good++
		}
	}
	for _, name := range w.in.Targets.Names() {
		if !slices.ContainsFunc(w.in.Namespaces, func(n distribution.Namespace) bool {
			return n.Name == name && !n.Terminating
		}) {
			desired++
		}
	}
	status := p.Status(v1beta1.ResourceDistributionStatus{}, 1, at(w.clock))
	if int(status.Desired) != desired || int(status.Succeeded) != good {
		w.Fatalf("%d of %d, want %d of %d: %v", status.Succeeded, status.Desired, good, desired, p.Failures())
	}
}

// Whatever others do and whichever requests fail, nothing foreign is touched at any request, and the distribution
// settles once the faults end; then a pass sends nothing.
func TestRandom(t *testing.T) {
	start := rand.Uint64() >> 1
	for seed := start; seed < start+30; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 80 {
				w.act()
				w.turn()
			}
			w.faulty = false
			w.clock += 120 // copies that were contested
			for range 3 {
				w.turn()
			}
			w.settled(w.turn())
			clear(w.requests)
			p := w.turn()
			if len(p.Steps) > 0 || len(w.requests) > 0 || p.Err() != nil {
				t.Errorf("an idle pass has %v", p.Steps)
			}
			w.in.Known = nil
			w.turn()
			if w.requests["Create"]+w.requests["Update"]+w.requests["Delete"] > 0 {
				t.Errorf("a restart writes: %v", w.requests)
			}
		})
	}
}

// The older a UID, the less it matters: an object of a former distribution of the same name is foreign.
func TestFormerOwner(t *testing.T) {
	w := newWorld(t, 1)
	w.faulty = false
	w.put("ns-1", func(o *corev1.Secret) { good(o); o.OwnerReferences[0].UID = types.UID("former") })
	w.turn()
	if o := w.all["ns-1"]; o.OwnerReferences[0].UID != "former" {
		t.Errorf("it is %+v", o)
	}
}
