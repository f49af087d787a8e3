package ahead_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/scope/ahead"
)

type configuration = admissionregistrationv1.MutatingWebhookConfiguration

func newSet(name string, generation int64) *appsv1beta1.SidecarSet {
	set := &appsv1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: generation}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	return set
}

func named(name string, entries ...admissionregistrationv1.MutatingWebhook) *configuration {
	return &configuration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: entries}
}

// served is an entry of the service with a CA.
func served(name, ca string) admissionregistrationv1.MutatingWebhook {
	c := scope.Reach{Namespace: scope.DefaultNamespace, Service: scope.DefaultService, CABundle: []byte(ca)}.Client()
	return admissionregistrationv1.MutatingWebhook{Name: name, ClientConfig: c}
}

func theirs() admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{Name: "theirs.example.com"}
}

func many(n int) []admissionregistrationv1.MutatingWebhook {
	var all []admissionregistrationv1.MutatingWebhook
	for i := range n {
		all = append(all, served(fmt.Sprintf("mpod-new-%016x.kb.io", i), "ca"))
	}
	return all
}

// told is what there is of entries: their names, or of those written ahead the paths and CAs.
func told(t *testing.T, c client.Client) []string {
	t.Helper()
	have := &configuration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: scope.DefaultConfiguration}, have); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, w := range have.Webhooks {
		text := w.Name
		if scope.IsAhead(w.Name) {
			text = *w.ClientConfig.Service.Path + " " + string(w.ClientConfig.CABundle)
		}
		all = append(all, text)
	}
	return all
}

func TestCover(t *testing.T) {
	busy := apierrors.NewConflict(schema.GroupResource{}, "x", nil)
	cases := map[string]struct {
		why   string
		have  []*configuration
		sets  []*appsv1beta1.SidecarSet
		fails int // patches that fail first
		want  []string
		err   string
	}{
		"the first":    {"the CA is that of the main configuration", []*configuration{named(scope.DefaultConfiguration), named(scope.DefaultMainConfiguration, served("m.kb.io", "main"))}, []*appsv1beta1.SidecarSet{newSet("a", 1)}, 0, []string{"/mutate-pod-new/a/uid-a/1 main"}, ""},
		"among others": {"what is there stays, and has the CA", []*configuration{named(scope.DefaultConfiguration, theirs(), served("mpod.kb.io", "ca"))}, []*appsv1beta1.SidecarSet{newSet("a", 1), newSet("b", 1)}, 0, []string{"theirs.example.com", "mpod.kb.io", "/mutate-pod-new/a/uid-a/1 ca", "/mutate-pod-new/b/uid-b/1 ca"}, ""},
		"a later one":  {"one entry for a set", []*configuration{named(scope.DefaultConfiguration, served("mpod.kb.io", "ca"))}, []*appsv1beta1.SidecarSet{newSet("a", 1), newSet("a", 2)}, 0, []string{"mpod.kb.io", "/mutate-pod-new/a/uid-a/2 ca"}, ""},
		"a conflict":   {"somebody else was first", []*configuration{named(scope.DefaultConfiguration, served("mpod.kb.io", "ca"))}, []*appsv1beta1.SidecarSet{newSet("a", 1)}, 3, []string{"mpod.kb.io", "/mutate-pod-new/a/uid-a/1 ca"}, ""},
		"conflicts":    {"it does not go on for ever", []*configuration{named(scope.DefaultConfiguration, served("mpod.kb.io", "ca"))}, []*appsv1beta1.SidecarSet{newSet("a", 1)}, 1000, []string{"mpod.kb.io"}, "cannot be fulfilled"},
		"no CA":        {"API servers would trust nobody", []*configuration{named(scope.DefaultConfiguration), named(scope.DefaultMainConfiguration, served("m.kb.io", ""))}, []*appsv1beta1.SidecarSet{newSet("a", 1)}, 0, nil, "no CA"},
		"no UID":       {"nobody could tell its states apart", []*configuration{named(scope.DefaultConfiguration)}, []*appsv1beta1.SidecarSet{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, 0, nil, "no UID"},
		"too many":     {"nobody leads, and API servers look at each entry for each pod", []*configuration{named(scope.DefaultConfiguration, many(64)...)}, []*appsv1beta1.SidecarSet{newSet("a", 1)}, 0, nil, "wait already for a leader"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder()
			for _, have := range c.have {
				b = b.WithObjects(have)
			}
			patches := 0
			api := b.WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
				if patches++; patches <= c.fails {
					return busy
				}
				return w.Patch(ctx, o, p, options...)
			}}).Build()
			w, err := ahead.New(api, ahead.Options{Pause: time.Nanosecond})
			if err != nil {
				t.Fatal(err)
			}
			err = nil
			for _, set := range c.sets {
				err = errors.Join(err, w.Cover(t.Context(), set))
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("%s: %v", c.why, err)
			}
			if patches > 10 {
				t.Errorf("%d patches", patches)
			}
			if c.want == nil {
				if patches > 0 {
					t.Errorf("%s: it was written", c.why)
				}
				return
			}
			if diff := cmp.Diff(c.want, told(t, api)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// An API server that does not answer holds nobody up for longer than the time that there is.
func TestTimeout(t *testing.T) {
	api := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
		<-ctx.Done()
		return ctx.Err()
	}}).Build()
	w, err := ahead.New(api, ahead.Options{Timeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Cover(t.Context(), newSet("a", 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
