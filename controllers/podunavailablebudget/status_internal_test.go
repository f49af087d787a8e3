package podunavailablebudget

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/write"
)

// What follows from the answers about a status that admission may write at the same time.
func TestReporting(t *testing.T) {
	group := schema.GroupResource{Group: "policy.kruise.io", Resource: "podunavailablebudgets"}
	conflict, missing := apierrors.NewConflict(group, "web", errors.New("changed")), apierrors.NewNotFound(group, "web")
	for name, c := range map[string]struct {
		why string
		// statuses are the answers to the writes, and read that to the questions; generation is that of the budget read.
		statuses   []error
		read       error
		generation int64
		writes     int
		gone       bool
		fails      error
	}{
		"written":         {why: "one write", statuses: []error{nil}, writes: 1},
		"the budget ends": {why: "there is no status to write", statuses: []error{missing}, writes: 1},
		"a conflict": {
			why: "the budget as it is, then another write", statuses: []error{conflict, nil}, generation: 1, writes: 2,
		},
		"four conflicts": {
			why: "the queue retries", statuses: []error{conflict, conflict, conflict, conflict}, generation: 1,
			writes: 4, gone: true, fails: conflict,
		},
		"a conflict, and then it ends": {
			why: "nothing is left to do", statuses: []error{conflict}, read: missing, writes: 1, gone: true,
		},
		"another spec": {
			why: "what was observed is of the former spec", statuses: []error{conflict}, generation: 2,
			writes: 1, gone: true, fails: statuspatch.ErrOutdated,
		},
	} {
		t.Run(name, func(t *testing.T) {
			budget := &podUnavailableBudget{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "u", Generation: 1, ResourceVersion: "7",
			}}
			s := &snapshot{object: budget}
			p := newPlan(s, func(*snapshot) *pass { return &pass{changed: true, status: pub.Status{TotalReplicas: 3}} })
			all := p.pass()
			writes, sent := all.Next(), 0
			for len(writes) > 0 {
				if w := writes[0]; w.Verb == write.Patch {
					sent++
					writes = all.Answer(time.Time{}, w, nil, c.statuses[sent-1])
					continue
				}
				fresh := kind().Named(s.key())
				fresh.SetUID("u")
				fresh.SetResourceVersion("8")
				fresh.SetGeneration(c.generation)
				writes = all.Answer(time.Time{}, writes[0], fresh, c.read)
			}
			if sent != c.writes || p.stands() == c.gone || !errors.Is(all.Err(), c.fails) || all.Next() != nil {
				t.Errorf("%s: %d writes, gone: %t, %v", c.why, sent, !p.stands(), all.Err())
			}
		})
	}
}
