package resourcedistribution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/resourcedistribution"
	"github.com/kruisekit/kruisekit/test/objects"
)

type distributor = v1beta1.ResourceDistribution

const plain = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"stringData":{"user":"reader"}}`

// model runs the reconciler over objects in memory.
type model struct {
	testing.TB
	*objects.Model

	options resourcedistribution.Options
	mu      sync.Mutex
	asked   []string
}

func newModel(t testing.TB) *model {
	t.Helper()
	m := &model{TB: t, Model: objects.NewModel(t, &v1beta1.ResourceDistributionList{}, v1beta1.AddToScheme)}
	m.restart(func(c client.WithWatch) client.WithWatch { return c })
	return m
}

// restart starts another process, whose requests go through something and are recorded.
func (m *model) restart(through func(client.WithWatch) client.WithWatch) {
	m.Helper()
	o := m.options
	o.Now, o.Recorder = m.Now, m.Server
	recorded := interceptor.NewClient(through(m.Server), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, x client.Object, opts ...client.CreateOption) error {
			return m.record("POST", x, c.Create(ctx, x, opts...))
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, x client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			return m.record("PATCH", x, c.Patch(ctx, x, p, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, x client.Object, opts ...client.DeleteOption) error {
			return m.record("DELETE", x, c.Delete(ctx, x, opts...))
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, x client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			return m.record("PATCH "+sub, x, c.SubResource(sub).Patch(ctx, x, p, opts...))
		},
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, x client.Object, opts ...client.GetOption,
		) error {
			err := c.Get(ctx, key, x, opts...)
			if x.GetObjectKind().GroupVersionKind().Kind == "Secret" { // a live read; the others are the cache's
				x.SetNamespace(key.Namespace)
				x.SetName(key.Name)
				return m.record("GET", x, err)
			}
			return err
		},
	})
	r, err := resourcedistribution.New(recorded, o)
	if err != nil {
		m.Fatal(err)
	}
	m.Reconciler = r
}

func (m *model) record(verb string, o client.Object, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	line := strings.TrimSpace(verb + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
	if err != nil {
		line += " failed"
	}
	m.asked = append(m.asked, line)
	return err
}

// requests since it was last called, sorted: they go out in parallel. The status comes last.
func (m *model) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.asked
	m.asked = nil
	slices.SortStableFunc(all, func(a, b string) int {
		key := func(s string) string {
			fields := strings.Fields(strings.TrimSuffix(s, " failed"))
			if strings.Contains(s, " status ") {
				return "~"
			}
			return fields[len(fields)-1]
		}
		return strings.Compare(key(a), key(b))
	})
	return all
}

// count of the requests that begin with each word.
func count(requests []string) map[string]int {
	counted := map[string]int{}
	for _, r := range requests {
		verb, _, _ := strings.Cut(r, " ")
		if strings.Contains(r, " status ") {
			verb = "status"
		}
		counted[verb]++
	}
	return counted
}

func (m *model) put(o client.Object) {
	m.Helper()
	if err := m.Server.Put(o); err != nil {
		m.Fatal(err)
	}
}

func (m *model) namespace(name string, labels map[string]string) {
	m.Helper()
	m.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
}

// distribute stores a distribution whose spec is written as JSON.
func (m *model) distribute(name, resource, targets string) *distributor {
	m.Helper()
	d := &distributor{}
	d.Name, d.UID, d.Generation = name, types.UID("uid-"+name), 1
	old := &distributor{}
	if err := m.Server.Get(m.Context(), types.NamespacedName{Name: name}, old); err == nil {
		d.Status, d.Generation = old.Status, old.Generation+1
	}
	d.Spec = spec(m, resource, targets)
	m.put(d)
	return d
}

func spec(t testing.TB, resource, targets string) (s v1beta1.ResourceDistributionSpec) {
	t.Helper()
	if err := json.Unmarshal(fmt.Appendf(nil, `{"resource":%s,"targets":{%s}}`, resource, targets), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (m *model) look(o client.Object) bool {
	return m.Server.Get(m.Context(), client.ObjectKeyFromObject(o), o) == nil
}

// secret returns the object of the name in a namespace; nil for none.
func (m *model) secret(namespace string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull"}}
	if !m.look(s) {
		return nil
	}
	return s
}

// turn reconciles one distribution.
func (m *model) turn(name string) (ctrl.Result, error) {
	return m.Reconciler.Reconcile(m.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
}

// must reconciles without an error.
func (m *model) must(name string) {
	m.Helper()
	if _, err := m.turn(name); err != nil {
		m.Fatal(err)
	}
}

// picture is the status in a line for each condition that is not False.
func (m *model) picture(name string) string {
	d := &distributor{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if !m.look(d) {
		return "gone"
	}
	lines := []string{fmt.Sprintf("%d of %d", d.Status.Succeeded, d.Status.Desired)}
	for _, c := range d.Status.Conditions {
		if c.Status != v1beta1.ResourceDistributionConditionFalse {
			lines = append(lines, fmt.Sprintf("%s %v: %s", c.Type, c.FailedNamespaces, c.Reason))
		}
	}
	return strings.Join(lines, "; ")
}

// conditionTypes are in the order of the status.
func conditionTypes() []v1beta1.ResourceDistributionConditionType {
	return []v1beta1.ResourceDistributionConditionType{
		"GetResourceFailed", "CreateResourceFailed", "UpdateResourceFailed", "DeleteResourceFailed", "ConflictOccurred",
		"NamespaceNotExists",
	}
}

// edit changes a copy as a tenant does.
func (m *model) edit(namespace string, change func(*corev1.Secret)) {
	m.Helper()
	s := m.secret(namespace)
	change(s)
	m.put(s)
}

func (m *model) remove(namespace string) {
	m.Helper()
	if err := m.Server.Delete(m.Context(), m.secret(namespace)); err != nil {
		m.Fatal(err)
	}
}
