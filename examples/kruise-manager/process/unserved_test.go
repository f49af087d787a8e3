package process

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
)

// A leader whose gates leave out the controllers of pull jobs says so once, where such jobs exist.
func TestUnserved(t *testing.T) {
	for name, c := range map[string]struct {
		why  string
		args []string
		// has are the kinds with an object.
		has string
		err error
		// lists are the requests, and warned the kinds.
		lists, warned []string
	}{
		"no job": {
			why: "nothing is lost", lists: []string{"ImageListPullJobList limit 1", "ImagePullJobList limit 1"},
		},
		"a job": {
			why:    "the chart of the reference sets the gate",
			has:    "ImagePullJob",
			lists:  []string{"ImageListPullJobList limit 1", "ImagePullJobList limit 1"},
			warned: []string{"ImagePullJob"},
		},
		"both": {
			why:    "each kind has a line",
			has:    "ImagePullJob ImageListPullJob",
			lists:  []string{"ImageListPullJobList limit 1", "ImagePullJobList limit 1"},
			warned: []string{"ImageListPullJob", "ImagePullJob"},
		},
		"gate": {
			why: "they are reconciled", args: []string{"--feature-gates=ImagePullJobGate=true"}, has: "ImagePullJob",
		},
		"no daemon": {
			why:    "the gate is not enough",
			args:   []string{"--feature-gates=KruiseDaemon=false,ImagePullJobGate=true"},
			has:    "ImagePullJob",
			lists:  []string{"ImageListPullJobList limit 1", "ImagePullJobList limit 1"},
			warned: []string{"ImagePullJob"},
		},
		"left out": {
			why:  "the command line says so",
			args: []string{"--controllers=*,-imagepulljob,-imagelistpulljob"},
			has:  "ImagePullJob",
		},
		"not installed": {
			why:   "no job can exist",
			err:   &meta.NoKindMatchError{},
			lists: []string{"ImageListPullJobList limit 1", "ImagePullJobList limit 1"},
		},
		"no answer": {
			why:   "the start does not depend on it",
			err:   errors.New("no answer"),
			lists: []string{"ImageListPullJobList limit 1", "ImagePullJobList limit 1"},
		},
		"one namespace": {
			why:    "the others are not for this manager",
			args:   []string{"--namespace=shop"},
			has:    "ImagePullJob",
			lists:  []string{"ImageListPullJobList limit 1 in shop", "ImagePullJobList limit 1 in shop"},
			warned: []string{"ImagePullJob"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := options.Parse(c.args, func(string) string { return "" })
			if err != nil {
				t.Fatal(err)
			}
			var lists, warned []string
			reader := interceptor.NewClient(nil, interceptor.Funcs{
				List: func(
					_ context.Context, _ runtimeclient.WithWatch, into runtimeclient.ObjectList, opts ...runtimeclient.ListOption,
				) error {
					var lo runtimeclient.ListOptions
					lo.ApplyOptions(opts)
					page := into.(*metav1.PartialObjectMetadataList)
					lists = append(lists, strings.TrimSuffix(page.Kind+" limit 1 in "+lo.Namespace, " in "))
					kind := strings.TrimSuffix(page.Kind, "List")
					if lo.Limit != 1 {
						t.Errorf("limit %d", lo.Limit)
					}
					if strings.Contains(" "+c.has+" ", " "+kind+" ") {
						page.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "warm-up"}}}
					}
					return c.err
				},
			})
			events := record.NewFakeRecorder(9)
			logger := funcr.New(func(_, line string) {
				if strings.Contains(line, `"Jobs are not reconciled: a feature gate is off"`) {
					_, kind, _ := strings.Cut(line, `"kind"="`)
					kind, _, _ = strings.Cut(kind, `"`)
					warned = append(warned, kind)
				}
			}, funcr.Options{})
			u := &unserved{reader: reader, recorder: events, options: o}
			if err := u.Start(log.IntoContext(t.Context(), logger)); err != nil {
				t.Errorf("%s: %v", c.why, err)
			}
			if diff := cmp.Diff([][]string{c.lists, c.warned}, [][]string{lists, warned}); diff != "" {
				t.Errorf("%s: requests and warnings (-want +got):\n%s", c.why, diff)
			}
			if len(events.Events) != len(c.warned) {
				t.Errorf("%d events", len(events.Events))
			}
		})
	}
}
