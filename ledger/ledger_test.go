package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// server is what the API server has, and how often it was asked.
type server struct {
	client.Reader

	mu    sync.Mutex
	pods  map[client.ObjectKey]*corev1.Pod
	asked int
}

func (s *server) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	pod, ok := s.pods[key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
	}
	pod.DeepCopyInto(into.(*corev1.Pod))
	return nil
}

func pod(name string, version int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), ResourceVersion: fmt.Sprint(version),
	}}
}

// show returns the name of a pod with its version.
func show(p *corev1.Pod) string {
	if p.Namespace == "" {
		return p.Name + p.ResourceVersion
	}
	return p.Namespace + "/" + p.Name + p.ResourceVersion
}

const (
	short = time.Second
	later = 10 * time.Second
	long  = 2 * ledger.Patience
)

// step is one call of Overlay after a time, and what is expected of it.
type step struct {
	after  time.Duration
	cached []*corev1.Pod
	want   []string // names with versions
	reads  int      // since the step before
	// recheck is the time after which the caller is to look again; zero for never.
	recheck time.Duration
}

func TestOverlay(t *testing.T) {
	owner := types.NamespacedName{Name: "web"}
	broken := errors.New("the connection broke")
	terminating := pod("a", 13)
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	other := pod("a", 20)
	other.UID = "another"
	type writes = *ledger.Ledger[*corev1.Pod]
	create := func(l writes) { l.Created(owner, pod("a", 10)) }
	patch := func(l writes) { l.Patched(owner, pod("a", 10)) }
	remove := func(l writes) { l.Deleted(owner, pod("a", 10)) }
	doubt := func(err error) func(writes) { return func(l writes) { l.Doubt(owner, pod("a", 0), err) } }
	list := func(pods ...*corev1.Pod) []*corev1.Pod { return pods }
	cases := map[string]struct {
		write func(writes)
		live  *corev1.Pod
		steps []step
	}{
		"nothing is recorded: the cache is right": {
			func(writes) {}, nil, []step{{cached: list(pod("b", 1)), want: []string{"b1"}}},
		},
		"a created object that the cache lacks": {
			create, nil, []step{{after: short, want: []string{"a10"}, recheck: ledger.Patience - short}},
		},
		"created, and deleted before the cache saw it": {create, nil, []step{
			{short, nil, []string{"a10"}, 0, ledger.Patience - short},
			{ledger.Patience, nil, nil, 1, 0},
			{short, nil, nil, 0, 0},
		}},
		"created, and the cache lags for minutes": {create, pod("a", 12), []step{
			{long, nil, []string{"a12"}, 1, ledger.Patience},
			{short, nil, []string{"a12"}, 0, ledger.Patience - short},
			{long, nil, []string{"a12"}, 1, ledger.Patience},
			{short, list(pod("a", 12)), []string{"a12"}, 0, 0},
			{short, nil, nil, 0, 0},
		}},
		"deleted by its name before the cache saw it": {
			func(l writes) { create(l); l.Deleted(owner, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}) }, nil,
			[]step{{after: short}, {after: short, cached: list(pod("a", 10))}},
		},
		"in doubt, of a name that the API server generates": {
			func(l writes) { l.Doubt(owner, pod("", 0), broken) }, nil, []step{{after: short}, {after: long}},
		},
		"patched, and the cache has lost the event": {patch, pod("a", 9), []step{ // as where etcd was restored
			{later, list(pod("a", 9)), []string{"a10"}, 0, ledger.Patience - later},
			{ledger.Patience - later, list(pod("a", 9)), []string{"a9"}, 1, 0},
			{short, list(pod("a", 9)), []string{"a9"}, 0, 0},
			{long, list(pod("a", 9)), []string{"a9"}, 0, 0},
		}},
		"deleted, and the cache has lost the event": {remove, pod("a", 9), []step{
			{later, list(pod("a", 9)), nil, 0, ledger.Patience - later},
			{ledger.Patience - later, list(pod("a", 9)), []string{"a9"}, 1, 0},
			{short, list(pod("a", 9)), []string{"a9"}, 0, 0},
		}},
		"patched, and the cache lags for minutes": {patch, pod("a", 12), []step{
			{long, list(pod("a", 9)), []string{"a12"}, 1, 0},
			{short, list(pod("a", 9)), []string{"a12"}, 0, 0},
			{short, list(pod("a", 11)), []string{"a12"}, 0, 0},
			{long, list(pod("a", 11)), []string{"a12"}, 1, 0},
			{short, list(pod("a", 13)), []string{"a13"}, 0, 0},
		}},
		"patched, deleted by another client, and the cache lags for minutes": {patch, nil, []step{
			{long, list(pod("a", 9)), nil, 1, 0},
			{short, list(pod("a", 9)), nil, 0, 0},
			{short, nil, nil, 0, 0},
		}},
		"patched, replaced by another client, and the cache lags for minutes": {patch, other, []step{
			{long, list(pod("a", 9)), []string{"a20"}, 1, 0},
			{short, list(pod("a", 9)), []string{"a20"}, 0, 0},
			{short, nil, []string{"a20"}, 0, ledger.Patience - 2*short},
			{short, list(other), []string{"a20"}, 0, 0},
		}},
		"a deleted object that the cache shows as such": {
			remove, nil, []step{{after: short, cached: list(terminating), want: []string{"a13"}}},
		},
		"deleted, and the cache lags for minutes": {remove, nil, []step{
			{long, list(pod("a", 10)), nil, 1, 0},
			{short, list(pod("a", 10)), nil, 0, 0},
		}},
		"deleted, held by a finalizer, and the cache lags for minutes": {remove, terminating, []step{
			{long, list(pod("a", 10)), []string{"a13"}, 1, 0},
			{short, list(pod("a", 10)), []string{"a13"}, 0, 0},
		}},
		"a create of unknown outcome that was made": {
			doubt(broken), pod("a", 10),
			[]step{
				{after: short, want: []string{"a10"}, reads: 1, recheck: ledger.Patience},
				{after: short, want: []string{"a10"}, recheck: ledger.Patience - short},
			},
		},
		"a create of unknown outcome that was not made": {
			doubt(broken), nil, []step{{after: short, reads: 1}, {after: short}},
		},
		"a create of unknown outcome in the cache": {
			doubt(broken), nil, []step{{after: short, cached: list(pod("a", 10)), want: []string{"a10"}}},
		},
		"a refused create": {doubt(apierrors.NewBadRequest("no")), nil, []step{{after: short}}},
		"a create while the API server was unavailable": {
			doubt(apierrors.NewServiceUnavailable("later")), nil, []step{{after: short, reads: 1}},
		},
		"another object has the name": {patch, nil, []step{{short, list(other), []string{"a20"}, 0, 0}}},
		"an earlier object has the name": {
			func(l writes) { l.Created(owner, other) }, nil,
			[]step{{after: short, cached: list(pod("a", 9)), want: []string{"a20"}}},
		},
		"the entries of the owner are gone": {
			func(l writes) { create(l); l.Forget(owner) }, nil, []step{{after: short}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			live := &server{pods: map[client.ObjectKey]*corev1.Pod{}}
			if c.live != nil {
				live.pods[client.ObjectKeyFromObject(c.live)] = c.live
			}
			now := time.Unix(1000, 0)
			l := ledger.New[*corev1.Pod](live, func() time.Time { return now })
			c.write(l)
			for i, s := range c.steps {
				now, live.asked = now.Add(s.after), 0
				got, recheck := overlay(t, l, owner, s.cached)
				if !slices.Equal(got, s.want) || live.asked != s.reads || recheck != s.recheck {
					t.Errorf("step %d: got %v after %d live reads, recheck after %s; want %v after %d, recheck after %s",
						i, got, live.asked, recheck, s.want, s.reads, s.recheck)
				}
			}
		})
	}
}

func overlay(
	t *testing.T, l *ledger.Ledger[*corev1.Pod], owner types.NamespacedName, cached []*corev1.Pod,
) ([]string, time.Duration) {
	t.Helper()
	pods, recheck, err := l.Overlay(t.Context(), owner, cached)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range pods {
		names = append(names, show(p))
	}
	return names, recheck
}

// failing cannot be read.
type failing struct {
	client.Reader

	err error
}

func (f failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}

// A read that fails is the error of Overlay; the entry stays for the next call.
func TestReadFails(t *testing.T) {
	owner, live := types.NamespacedName{Name: "web"}, failing{err: errors.New("unavailable")}
	l := ledger.New[*corev1.Pod](live, func() time.Time { return time.Unix(0, 0) })
	l.Doubt(owner, pod("a", 0), errors.New("the connection broke"))
	for range 2 {
		if _, _, err := l.Overlay(t.Context(), owner, nil); !errors.Is(err, live.err) {
			t.Errorf("got %v, want the failed read", err)
		}
	}
}

// The apply of an object without a UID may create the object, as long as the cache does not show it. That of an object
// that was observed does not.
func TestRecordApply(t *testing.T) {
	owner, lost := types.NamespacedName{Name: "web"}, errors.New("the connection broke")
	for name, c := range map[string]struct {
		uid, subresource string
		err              error
		// pods are those after the apply, which the cache lacks, and reads the live ones that show them.
		pods, reads int
	}{
		"a new object":                 {pods: 1},
		"a new object, in doubt":       {err: lost, pods: 1, reads: 1},
		"an object that was observed":  {uid: "a"},
		"the status of some object":    {subresource: write.Status},
		"an observed object, in doubt": {uid: "a", err: lost},
		"the status of one, in doubt":  {subresource: write.Status, err: lost},
	} {
		t.Run(name, func(t *testing.T) {
			stored := pod("a", 1)
			s := &server{pods: map[client.ObjectKey]*corev1.Pod{client.ObjectKeyFromObject(stored): stored}}
			l := ledger.New[*corev1.Pod](s, func() time.Time { return time.Unix(0, 0) })
			rendered := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID(c.uid)}}
			w := &write.Write{
				Verb: write.Patch, Object: rendered, Subresource: c.subresource, Type: types.ApplyPatchType,
			}
			if c.err != nil {
				l.Record(owner, w, nil, c.err)
			} else {
				l.Record(owner, w, stored, nil)
			}
			pods, _, err := l.Overlay(t.Context(), owner, nil)
			if err != nil || len(pods) != c.pods || s.asked != c.reads {
				t.Errorf("got %d pods after %d reads, %v", len(pods), s.asked, err)
			}
		})
	}
}
