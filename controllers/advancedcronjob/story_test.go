package advancedcronjob_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/storytest"
)

// A story is an hour of a schedule: the requests of the reconciler, and the children after them. A child is its tick; +
// has succeeded, - has failed.
func TestStories(t *testing.T) {
	type stories = map[string]struct {
		why    string
		kind   v1beta1.TemplateKind
		change []func(*v1beta1.AdvancedCronJob)
		// lasts is how many minutes a child runs.
		lasts int
		then  map[string]func(*model, *v1beta1.AdvancedCronJob)
	}
	schedule := func(text string) func(*v1beta1.AdvancedCronJob) {
		return func(j *v1beta1.AdvancedCronJob) { j.Spec.Schedule = text }
	}
	pause := func(is bool) func(*model, *v1beta1.AdvancedCronJob) {
		return func(m *model, j *v1beta1.AdvancedCronJob) { m.change(j, paused(is)) }
	}
	for name, story := range (stories{
		"allow": {
			why:    "children that last longer than the schedule run beside each other",
			kind:   v1beta1.JobTemplate,
			change: []func(*v1beta1.AdvancedCronJob){schedule("*/10 * * * *")},
			lasts:  15,
		},
		"forbid": {
			why:    "a tick waits for the child before, and runs as soon as it ends",
			kind:   v1beta1.JobTemplate,
			change: []func(*v1beta1.AdvancedCronJob){schedule("*/10 * * * *"), policy(v1beta1.ForbidConcurrent)},
			lasts:  15,
		},
		"replace": {
			why:    "a tick replaces the child before",
			kind:   v1beta1.ImageListPullJobTemplate,
			change: []func(*v1beta1.AdvancedCronJob){schedule("*/20 * * * *"), policy(v1beta1.ReplaceConcurrent)},
			lasts:  25,
		},
		"pause": {
			"one child catches up after a pause", v1beta1.BroadcastJobTemplate,
			[]func(*v1beta1.AdvancedCronJob){schedule("*/10 * * * *"), history(1, 1)},
			2,
			map[string]func(*model, *v1beta1.AdvancedCronJob){"00:12": pause(true), "00:44": pause(false)},
		},
	}) {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, story.kind)
			job := m.create("web", story.change...)
			told := &strings.Builder{}
			fmt.Fprintf(told, "# %s\n\n", story.why)
			ends := map[string]int{}
			for minute := range 60 {
				at := fmt.Sprintf("00:%02d", minute)
				m.Clock = clock(at)
				for _, c := range m.children() {
					if ends[c.GetName()] == 0 {
						ends[c.GetName()] = minute - 1 + story.lasts
					}
					if isActive(c) && ends[c.GetName()] <= minute {
						m.end(c, minute%4 != 0)
					}
				}
				if do := story.then[at]; do != nil {
					do(m, job)
				}
				m.Server.Requests()
				m.Still()
				if requests := m.Server.Requests(); len(requests) > 0 {
					fmt.Fprintf(told, "%s  %s\n", at, m.picture())
					for _, request := range requests {
						fmt.Fprintf(told, "       %s\n", request)
					}
				}
			}
			storytest.Compare(t, name, told.String())
		})
	}
}
