package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/ledger"
)

// server is what the API server has, and how often it was asked.
type server struct {
	client.Reader

	pods  map[string]*corev1.Pod
	asked int
}

func (s *server) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.asked++
	pod, ok := s.pods[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
	}
	pod.DeepCopyInto(into.(*corev1.Pod))
	return nil
}

func pod(name string, version int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: fmt.Sprint(version)}}
}

func TestOverlay(t *testing.T) {
	owner := types.NamespacedName{Name: "web"}
	broken := errors.New("the connection broke")
	terminating := pod("a", 3)
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	cases := map[string]struct {
		why    string
		write  func(*ledger.Ledger[*corev1.Pod])
		cached []*corev1.Pod
		live   []*corev1.Pod
		later  time.Duration
		want   []string // names with versions
		asked  int
		leaves bool // something is still recorded after that
	}{
		"created, not seen": {
			"it is there", func(l *ledger.Ledger[*corev1.Pod]) { l.Created(owner, pod("a", 1)) }, nil, nil, 0, []string{"a1"}, 0, true,
		},
		"created, seen": {
			"the cache tells", func(l *ledger.Ledger[*corev1.Pod]) { l.Created(owner, pod("a", 1)) }, []*corev1.Pod{pod("a", 2)}, nil, 0, []string{"a2"}, 0, false,
		},
		"created, never seen, gone": {
			"a lost event heals", func(l *ledger.Ledger[*corev1.Pod]) { l.Created(owner, pod("a", 1)) }, nil, nil, time.Hour, nil, 1, false,
		},
		"created, never seen, there": {
			"the API server tells", func(l *ledger.Ledger[*corev1.Pod]) { l.Created(owner, pod("a", 1)) }, nil, []*corev1.Pod{pod("a", 5)}, time.Hour, []string{"a5"}, 1, true,
		},
		"patched, old in the cache": {
			"the answer is newer", func(l *ledger.Ledger[*corev1.Pod]) { l.Patched(owner, pod("a", 10)) }, []*corev1.Pod{pod("a", 9)}, nil, 0, []string{"a10"}, 0, true,
		},
		"patched, gone": {
			"the cache had it", func(l *ledger.Ledger[*corev1.Pod]) { l.Patched(owner, pod("a", 2)) }, nil, nil, 0, nil, 0, false,
		},
		"created and patched, not seen": {
			"the cache never had it", func(l *ledger.Ledger[*corev1.Pod]) {
				l.Created(owner, pod("a", 1))
				l.Patched(owner, pod("a", 2))
			}, nil, nil, 0, []string{"a2"}, 0, true,
		},
		"deleted, old in the cache": {
			"it is as good as gone", func(l *ledger.Ledger[*corev1.Pod]) { l.Deleted(owner, pod("a", 1)) }, []*corev1.Pod{pod("a", 1)}, nil, 0, nil, 0, true,
		},
		"deleted, terminating": {
			"the cache knows", func(l *ledger.Ledger[*corev1.Pod]) { l.Deleted(owner, pod("a", 1)) }, []*corev1.Pod{terminating}, nil, 0, []string{"a3"}, 0, false,
		},
		"doubt, made": {
			"the API server tells", func(l *ledger.Ledger[*corev1.Pod]) { l.Doubt(owner, pod("a", 0), broken) }, nil, []*corev1.Pod{pod("a", 1)}, 0, []string{"a1"}, 1, true,
		},
		"doubt, not made": {
			"the API server tells", func(l *ledger.Ledger[*corev1.Pod]) { l.Doubt(owner, pod("a", 0), broken) }, nil, nil, 0, nil, 1, false,
		},
		"refused": {
			"there is no doubt", func(l *ledger.Ledger[*corev1.Pod]) { l.Doubt(owner, pod("a", 0), apierrors.NewBadRequest("no")) }, nil, nil, 0, nil, 0, false,
		},
		"unavailable": {
			"nobody knows", func(l *ledger.Ledger[*corev1.Pod]) {
				l.Doubt(owner, pod("a", 0), apierrors.NewServiceUnavailable("later"))
			}, nil, nil, 0, nil, 1, false,
		},
		"another took the name": {
			"what was written is gone", func(l *ledger.Ledger[*corev1.Pod]) {
				l.Patched(owner, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "old", ResourceVersion: "9"}})
			},
			[]*corev1.Pod{pod("a", 3)},
			nil, 0,
			[]string{"a3"},
			0, false,
		},
		"forgotten": {
			"the owner is gone", func(l *ledger.Ledger[*corev1.Pod]) {
				l.Created(owner, pod("a", 1))
				l.Forget(owner)
			}, nil, nil, 0, nil, 0, false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			live := &server{pods: map[string]*corev1.Pod{}}
			for _, p := range c.live {
				live.pods[p.Name] = p
			}
			now := time.Unix(1000, 0)
			l := ledger.New[*corev1.Pod](live, func() time.Time { return now })
			c.write(l)
			now = now.Add(c.later)
			if got := overlay(t, l, owner, c.cached); !slices.Equal(got, c.want) || live.asked != c.asked {
				t.Errorf("%s: want %v after %d reads, got %v after %d", c.why, c.want, c.asked, got, live.asked)
			}
			if leaves := len(overlay(t, l, owner, nil)) > 0 || c.write != nil && name == "deleted, old in the cache" && len(overlay(t, l, owner, c.cached)) == 1; leaves != c.leaves && len(c.cached) == 0 {
				t.Errorf("%s: something is recorded still: %t, want %t", c.why, leaves, c.leaves)
			}
		})
	}
}

func overlay(t *testing.T, l *ledger.Ledger[*corev1.Pod], owner types.NamespacedName, cached []*corev1.Pod) []string {
	t.Helper()
	pods, err := l.Overlay(t.Context(), owner, cached)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range pods {
		names = append(names, p.Name+p.ResourceVersion)
	}
	return names
}
