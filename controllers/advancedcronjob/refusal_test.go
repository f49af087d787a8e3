package advancedcronjob_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
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
