package advancedcronjob_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// keeps is a client that may not delete an object of a name.
type keeps struct {
	client.Client

	name string
}

func (k *keeps) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	if o.GetName() == k.name {
		return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, k.name,
			errors.New("it is kept"))
	}
	return k.Client.Delete(ctx, o, options...)
}

// What a child replaces is deleted before it is created, and finished children go once the tick is recorded. A failure
// on the way holds up what depends on it, and the status nowhere.
func TestOrder(t *testing.T) {
	down := apierrors.NewInternalError(errors.New("down"))
	const replaced, created, status, trimmed = "delete/web-1893456600", "create/web-1893456900", "status/web",
		"delete/web-1893456300"
	for name, c := range map[string]struct {
		fault string
		want  []string
	}{
		"all succeeds":                    {"", []string{replaced, created, status, trimmed}},
		"what is replaced is not deleted": {replaced, []string{replaced, trimmed}},
		"the creation fails":              {created, []string{replaced, created, status, trimmed}},
		"the tick is not recorded":        {status, []string{replaced, created, status}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, v1beta1.JobTemplate)
			job := m.create("web", policy(v1beta1.ReplaceConcurrent), history(9, 9))
			m.until("00:05")
			m.end(m.children()[0], true)
			m.until("00:10")
			m.change(job, history(0, 9))
			var sent []string
			m.restart(podbench.Writes(m.Server, func(what string, write func() error) error {
				if sent = append(sent, what); what == c.fault {
					return down
				}
				return write()
			}))
			m.Clock = clock("00:15")
			_, err := m.Reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(job)})
			if diff := cmp.Diff(c.want, sent); diff != "" || (err != nil) != (c.fault != "") {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A child that may not be deleted keeps the other finished children from no cleanup, and no tick from its child.
func TestKeptChild(t *testing.T) {
	m := newModel(t, v1beta1.JobTemplate)
	job := m.create("web", history(9, 9))
	for _, at := range []string{"00:05", "00:10", "00:15", "00:20", "00:25"} {
		m.until(at)
	}
	all := m.children()
	for _, c := range all {
		m.end(c, true)
	}
	m.Still()
	m.has("five have finished", "00:05+ 00:10+ 00:15+ 00:20+ 00:25+")
	m.restart(&keeps{m.Server, all[0].GetName()})
	m.change(job, history(0, 9))
	for range 3 {
		m.Reconcile()
	}
	m.has("the oldest is kept", "00:05+")
	m.Clock = clock("00:30")
	m.Reconcile()
	m.has("the next tick has its child", "00:05+ 00:30")
	m.last(job, "00:30")
}
