package statefulset_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
	"github.com/kruisekit/kruisekit/test/storytest"
)

// A story is a rollout, turn by turn: the requests of the reconciler, and the pods after them. A pod is its ordinal and
// the release of its image; a dash is not ready, a star terminating.
func TestStories(t *testing.T) {
	budget := func(n int32) func(*v1beta1.StatefulSet) {
		return rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) { v := intstr.FromInt32(n); u.MaxUnavailable = &v })
	}
	stories := map[string]struct {
		why    string
		set    []func(*v1beta1.StatefulSet)
		change []func(*v1beta1.StatefulSet)
		// offline means that file systems grow when they are mounted.
		offline bool
	}{
		"ordered": {
			why: "pods are recreated one at a time, the last first", change: []func(*v1beta1.StatefulSet){image("web:2")},
		},
		"expansion": {
			why:    "each claim grows before its pod is updated in place",
			set:    []func(*v1beta1.StatefulSet){inPlace, scaled(2), expanding},
			change: []func(*v1beta1.StatefulSet){image("web:2"), sized("2Gi")},
		},
		"expansion offline": {
			why:     "a volume that grows when it is mounted has its pod recreated",
			set:     []func(*v1beta1.StatefulSet){inPlace, scaled(2), expanding},
			change:  []func(*v1beta1.StatefulSet){sized("2Gi")},
			offline: true,
		},
		"parallel": {
			why:    "two pods at a time change in place, down to the partition",
			set:    []func(*v1beta1.StatefulSet){parallel, inPlace, budget(2)},
			change: []func(*v1beta1.StatefulSet){image("web:2"), partition(1)},
		},
		"reserved": {
			why: "the pod of an ordinal that is reserved is replaced by one beyond the end",
			set: []func(*v1beta1.StatefulSet){parallel},
			change: []func(*v1beta1.StatefulSet){func(s *v1beta1.StatefulSet) {
				s.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(1)}
			}},
		},
		"scaled in": {
			why:    "pods go one at a time, each after its claim refers to it",
			set:    []func(*v1beta1.StatefulSet){withClaims(keeps, deletes)},
			change: []func(*v1beta1.StatefulSet){scaled(1)},
		},
		"grace": {
			why: "a pod leaves traffic for a minute before it changes",
			set: []func(*v1beta1.StatefulSet){inPlace, scaled(2), rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
				u.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: 60}
			})},
			change: []func(*v1beta1.StatefulSet){image("web:2")},
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, statefulset.Options{ExpandClaims: true})
			m.offline = story.offline
			set := m.create("web", 4, story.set...)
			m.Eventually(func() error { m.look(set); m.provision(); return settled(*set.Spec.Replicas)(set) })
			m.Still()
			m.Server.Requests()
			m.change(set, story.change...)
			m.Server.Requests()
			told := &strings.Builder{}
			fmt.Fprintf(told, "# %s\n\n", story.why)
			started := m.Clock
			for range 200 {
				before := m.Server.Version()
				m.Reconcile()
				if requests := m.Server.Requests(); len(requests) > 0 {
					fmt.Fprintf(told, "%6s  %s\n", m.Clock.Sub(started).Round(time.Second), m.picture(set))
					slices.SortStableFunc(requests, func(a, b string) int { return place(b) - place(a) })
					for _, request := range requests {
						fmt.Fprintf(told, "        %s\n", strings.ReplaceAll(request, "/web/status", "/status"))
					}
				}
				m.RunPods()
				m.CollectClaims()
				m.provision()
				m.Server.Requests() // those of the garbage collector
				if m.Server.Version() != before {
					m.Advance(time.Second)
					continue
				}
				if m.Due.IsZero() || !m.Due.After(m.Clock) {
					break
				}
				m.Clock = m.Due
			}
			m.look(set)
			fmt.Fprintf(told, "\n%s\n", m.picture(set))
			storytest.Compare(t, name, told.String())
		})
	}
}

// place orders the requests of one pass, which go out in parallel: revisions, then the objects of pods from the last
// ordinal, then the status. The requests about one pod keep their order.
func place(request string) int {
	if strings.Contains(request, " controllerrevisions/") {
		return math.MaxInt
	}
	if m := regexp.MustCompile(`web-(\d+)[ /]`).FindStringSubmatch(request); m != nil {
		ordinal, _ := strconv.Atoi(m[1])
		return ordinal + 1
	}
	return 0
}
