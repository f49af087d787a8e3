package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

// feed is what fills some tables.
type feed struct {
	key    string
	tables []*table
	run    func(context.Context)
}

// workloads are the kinds of the first page.
func workloads() []string {
	return []string{
		kinds.CloneSet, kinds.StatefulSet, kinds.DaemonSet, kinds.UnitedDeployment, kinds.SidecarSet, kinds.BroadcastJob,
		kinds.Deployment + native, kinds.StatefulSet + native, kinds.DaemonSet + native,
	}
}

// native ends the names of kinds of apps.
const native = "." + appsv1.GroupName

// kindNamed returns the kind of a name: of apps.kruise.io where the name has no group.
func kindNamed(name string) schema.GroupKind {
	if kind, is := strings.CutSuffix(name, native); is {
		return schema.GroupKind{Group: appsv1.GroupName, Kind: kind}
	}
	return schema.GroupKind{Group: kinds.Apps, Kind: name}
}

// nameOf returns the name of a kind.
func nameOf(kind schema.GroupKind) string {
	if kind.Group == appsv1.GroupName {
		return kind.String()
	}
	return kind.Kind
}

func budgets() schema.GroupKind {
	return schema.GroupKind{Group: kinds.Policy, Kind: "PodUnavailableBudget"}
}

// feeds returns those of a view of the page.
func (c *cluster) feeds(query url.Values) ([]feed, error) {
	switch view := query.Get("view"); view {
	case "workloads":
		var all []feed
		for _, kind := range workloads() {
			all = append(all, c.all(kindNamed(kind), listed))
		}
		return all, nil
	case "budgets":
		return []feed{c.all(budgets(), budgetOf)}, nil
	case "pulls":
		return []feed{c.all(kindNamed("ImagePullJob"), pullOf), c.all(kindNamed("NodeImage"), nodeImageOf)}, nil
	case "probes":
		states := nodeProbesOf(c.namespace)
		return []feed{c.all(kindNamed("PodProbeMarker"), markerOf), c.all(kindNamed("NodePodProbe"), states)}, nil
	case "rollout":
		r := ref{kind: query.Get("kind"), namespace: query.Get("namespace"), name: query.Get("name")}
		if err := r.check(c.namespace); err != nil {
			return nil, err
		}
		return []feed{c.rollout(r)}, nil
	default:
		return nil, fmt.Errorf("there is no view %q", view)
	}
}

// all returns the feed of all objects of a kind.
func (c *cluster) all(kind schema.GroupKind, row func(*unstructured.Unstructured) any) feed {
	t := newTable(nameOf(kind))
	l := list{kind: kind, namespace: c.namespace, row: row, into: t}
	return feed{key: t.name, tables: []*table{t}, run: func(ctx context.Context) { c.follow(ctx, l) }}
}

// ref names a workload.
type ref struct{ kind, namespace, name string }

// check refuses what names no workload of the namespace that is shown.
func (r ref) check(shown string) error {
	switch {
	case !slices.Contains(workloads(), r.kind):
		return fmt.Errorf("there are no workloads of kind %q", r.kind)
	case r.name == "" || strings.Contains(r.name+r.namespace, "/"):
		return errors.New("the name of the workload is missing or wrong")
	case r.kind == kinds.SidecarSet && r.namespace != "" || r.kind != kinds.SidecarSet && r.namespace == "":
		return errors.New("the namespace does not fit the kind")
	case shown != "" && r.namespace != "" && r.namespace != shown:
		return fmt.Errorf("the dashboard shows namespace %s alone", shown)
	}
	return nil
}

// sources runs feeds while they have readers.
type sources struct {
	// start runs a feed until stop is called.
	start func(run func(context.Context)) (stop func())
	// linger is how long a feed goes on without readers: a page that is loaded again finds it.
	linger time.Duration

	mu      sync.Mutex
	running map[string]*source
}

type source struct {
	tables []*table
	stop   func()
	users  int
	idle   *time.Timer
}

// open attaches a reader to a feed, which begins where it does not run. The reader calls done when it leaves.
func (s *sources) open(f feed, r *reader) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := s.running[f.key]
	if running == nil {
		running = &source{tables: f.tables, stop: s.start(f.run)}
		s.running[f.key] = running
	}
	if running.idle != nil {
		running.idle.Stop()
		running.idle = nil
	}
	running.users++
	for _, t := range running.tables {
		t.attach(r)
	}
	return func() { s.leave(f.key, running, r) }
}

func (s *sources) leave(key string, running *source, r *reader) {
	for _, t := range running.tables {
		t.detach(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if running.users--; running.users > 0 {
		return
	}
	running.idle = time.AfterFunc(s.linger, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if running.users == 0 && s.running[key] == running {
			running.stop()
			delete(s.running, key)
		}
	})
}

// active returns how many feeds run.
func (s *sources) active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

// kindOfPods and kindOfEvents are kinds of Kubernetes.
func kindOfPods() schema.GroupKind { return schema.GroupKind{Kind: "Pod"} }

func kindOfEvents() schema.GroupKind { return corev1.SchemeGroupVersion.WithKind("Event").GroupKind() }

// spawn runs a function that a group waits for.
func spawn(group *sync.WaitGroup, run func()) {
	group.Add(1)
	go func() {
		defer group.Done()
		run()
	}()
}
