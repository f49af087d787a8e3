package statefulset

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/storytest"
)

// A story is a rollout, turn by turn: the requests of the reconciler, and the pods after them. A pod is its ordinal and
// the release of its image; a dash is not ready, a star terminating.
func TestStories(t *testing.T) {
	stories := map[string]struct {
		why    string
		set    changes
		change changes
		// offline means that file systems grow when they are mounted.
		offline bool
	}{
		"ordered": {
			why: "pods are recreated one at a time, the last first", change: changes{withImage("web:2")},
		},
		"expansion": {
			why:    "each claim grows before its pod is updated in place",
			set:    changes{inPlace, scaled(2), expanding},
			change: changes{withImage("web:2"), sized("2Gi")},
		},
		"expansion offline": {
			why:     "a volume that grows when it is mounted has its pod recreated",
			set:     changes{inPlace, scaled(2), expanding},
			change:  changes{sized("2Gi")},
			offline: true,
		},
		"parallel": {
			why:    "two pods at a time change in place, down to the partition",
			set:    changes{parallel, inPlace, maxUnavailable(2)},
			change: changes{withImage("web:2"), partition(1)},
		},
		"reserved": {
			why: "the pod of an ordinal that is reserved is replaced by one beyond the end",
			set: changes{parallel},
			change: changes{func(s *v1beta1.StatefulSet) {
				s.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(1)}
			}},
		},
		"scaled in": {
			why:    "pods go one at a time, each after its claim refers to it",
			set:    changes{withClaims(keeps, deletes)},
			change: changes{scaled(1)},
		},
		"grace": {
			why: "a pod leaves traffic for a minute before it changes",
			set: changes{inPlace, scaled(2), rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
				u.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: 60}
			})},
			change: changes{withImage("web:2")},
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, Options{ExpandClaims: true})
			m.offline = story.offline
			set := m.create("web", 4, story.set...)
			m.Eventually(func() error { m.Look(set); m.provision(); return settled(*set.Spec.Replicas)(set) })
			m.Still()
			m.Server.Requests()
			m.change(set, story.change...)
			m.Server.Requests()
			told := storytest.Job{
				Why: story.why, Model: m.Model, Object: set, Counters: func() string { return "" },
				Run:     func() { m.RunPods(); m.CollectClaims(); m.provision() },
				Picture: func() string { return m.picture(set) },
				Readable: func(requests []string) []string {
					slices.SortStableFunc(requests, func(a, b string) int { return place(b) - place(a) })
					for i := range requests {
						requests[i] = strings.ReplaceAll(requests[i], "/web/status", "/status")
					}
					return requests
				},
			}.Text(t)
			storytest.Compare(t, name, told)
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
