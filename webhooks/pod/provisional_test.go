package pod_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// A pod that a provisional entry sends gets its set, whatever the cache has, and costs a live read only where the cache
// lacks the set.
func TestProvisional(t *testing.T) {
	set := func(image string, generation int64) *appsv1beta1.SidecarSet {
		s := newSet(t, "a", strings.ReplaceAll(logs, "log:1", image))
		s.Generation = generation
		return s
	}
	closed := func(s *appsv1beta1.SidecarSet) string {
		return strings.TrimSuffix(pod.ProvisionalPath, "/") + scope.MarkOf(s).Segments()
	}
	cases := map[string]struct {
		why          string
		path         string
		cached, live *appsv1beta1.SidecarSet
		fault        error
		want         []string // nil for a refusal
		reads        int
	}{
		"not cached": {
			why:   "it is read",
			path:  closed(set("log:1", 1)),
			live:  set("log:1", 1),
			want:  []string{"main=m", "log=log:1"},
			reads: 1,
		},
		"cached": {
			why:    "nothing is read",
			path:   closed(set("log:1", 1)),
			cached: set("log:1", 1),
			want:   []string{"main=m", "log=log:1"},
		},
		"cached later": {
			why:    "nothing is read",
			path:   closed(set("log:1", 1)),
			cached: set("log:2", 2),
			want:   []string{"main=m", "log=log:2"},
		},
		"cached earlier": {
			why:    "it is read",
			path:   closed(set("log:2", 2)),
			cached: set("log:1", 1),
			live:   set("log:2", 2),
			want:   []string{"main=m", "log=log:2"},
			reads:  1,
		},
		"never came": {"somebody refused it", closed(set("log:1", 1)), nil, nil, nil, []string{"main=m"}, 1},
		"no answer": {
			why:   "the entry is ignored until the set can be read",
			path:  closed(set("log:1", 1)),
			fault: errors.New("down"),
			want:  []string{"main=m"},
			reads: 1,
		},
		"no answer, open": {
			why:   "the pod may go without",
			path:  strings.Replace(closed(set("log:1", 1)), "-new", "-new-open", 1),
			fault: errors.New("down"),
			want:  []string{"main=m"},
			reads: 1,
		},
		"sent otherwise": {
			why: "only the entry says that there is a new one", path: pod.Path, live: set("log:1", 1), want: []string{"main=m"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			live := &shelf{fault: c.fault}
			if c.live != nil {
				live.sets = append(live.sets, c.live)
			}
			index := indexOf()
			if c.cached != nil {
				index = indexOf(c.cached)
			}
			w, err := over(pod.SidecarLookups{Sets: index, Namespaces: &shelf{}, Revisions: &shelf{}, Live: live},
				pod.Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			req := request(t, "u", plain)
			answer := serveAt(t, w, c.path, req)
			if live.reads != c.reads {
				t.Errorf("%s: %d reads", c.why, live.reads)
			}
			if c.want == nil {
				if answer.Allowed || answer.Result.Code != http.StatusServiceUnavailable {
					t.Errorf("%s: %+v", c.why, answer.Result)
				}
				return
			}
			same(t, c.why, c.want, describe(t, patched(t, req, answer)))
		})
	}
}

// A set that is not stored is read for each pod in the first moments, and then once a second.
func TestProvisionalAbsent(t *testing.T) {
	set := newSet(t, "a", logs)
	set.UID, set.Generation = "uid-a", 1
	live, clock := &shelf{}, now()
	w, err := over(pod.SidecarLookups{Sets: indexOf(), Namespaces: &shelf{}, Revisions: &shelf{}, Live: live},
		pod.Options{Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSuffix(pod.ProvisionalPath, "/") + scope.MarkOf(set).Segments()
	create := func() []string {
		req := request(t, "u", plain)
		return describe(t, patched(t, req, serveAt(t, w, path, req)))
	}
	for _, step := range []struct {
		why   string
		at    time.Duration
		pods  int
		reads int
		want  []string
	}{
		{"each pod may be the first after the set", 0, 3, 3, []string{"main=m"}},
		{"the absence lasts", 2 * time.Second, 100, 4, []string{"main=m"}},
		{"a second later", 3 * time.Second, 100, 5, []string{"main=m"}},
	} {
		clock = now().Add(step.at)
		for range step.pods {
			same(t, step.why, step.want, create())
		}
		if live.reads != step.reads {
			t.Errorf("%s: %d reads, want %d", step.why, live.reads, step.reads)
		}
	}
	again := set.DeepCopy()
	again.UID = "another"
	live.sets = []*appsv1beta1.SidecarSet{again}
	path = strings.TrimSuffix(pod.ProvisionalPath, "/") + scope.MarkOf(again).Segments()
	same(t, "a set of the name that is created later is another one", []string{"main=m", "log=log:1"}, create())
}

// A forged mark of a set that is stored costs as little.
func TestProvisionalForged(t *testing.T) {
	set := newSet(t, "a", logs)
	set.UID, set.Generation = "uid-a", 1
	forged := set.DeepCopy()
	forged.Generation = 1000
	live, clock := &shelf{sets: []*appsv1beta1.SidecarSet{set}}, now()
	w, err := over(pod.SidecarLookups{Sets: indexOf(set), Namespaces: &shelf{}, Revisions: &shelf{}, Live: live},
		pod.Options{Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSuffix(pod.ProvisionalPath, "/") + scope.MarkOf(forged).Segments()
	for i := range 100 {
		if i > 0 {
			clock = now().Add(3 * time.Second)
		}
		req := request(t, "u", plain)
		same(t, "the set as it is stored", []string{"main=m", "log=log:1"},
			describe(t, patched(t, req, serveAt(t, w, path, req))))
	}
	if live.reads != 2 {
		t.Errorf("%d reads", live.reads)
	}
}

// A new set that cannot be decoded stops its pods, unless they may go without it.
func TestProvisionalInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		set  *appsv1beta1.SidecarSet
		path string
		code int32
	}{
		"closed": {newSet(t, "a", logs), pod.ProvisionalPath, 422},
		"open":   {open(newSet(t, "a", logs)), pod.ProvisionalOpenPath, 0},
	} {
		t.Run(name, func(t *testing.T) {
			live := &shelf{sets: []*appsv1beta1.SidecarSet{c.set}, invalid: true}
			w, err := over(pod.SidecarLookups{Sets: indexOf(), Namespaces: &shelf{}, Revisions: &shelf{}, Live: live},
				pod.Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			req := request(t, "u", plain)
			answer := serveAt(t, w, strings.TrimSuffix(c.path, "/")+scope.MarkOf(c.set).Segments(), req)
			if c.code != 0 {
				refusedWith(t, answer, c.code, "sidecarsets[a].spec")
				return
			}
			same(t, "the pod goes without", []string{"main=m"}, describe(t, patched(t, req, answer)))
			if len(answer.Warnings) != 1 || !strings.Contains(answer.Warnings[0], "sidecarset a is left out") {
				t.Errorf("warnings %q", answer.Warnings)
			}
		})
	}
}
