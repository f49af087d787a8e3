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
)

// A leader whose gates leave out the controllers of pull jobs says so once, where such jobs exist.
func TestUnserved(t *testing.T) {
	for name, c := range map[string]struct {
		why  string
		args []string
		// has are the kinds with an object.
		has string
		err error
		// silent means that nothing is looked for.
		silent bool
		warned []string
	}{
		"no job": {why: "nothing is lost"},
		"a job": {
			why: "the chart of the reference sets the gate", has: "ImagePullJob", warned: []string{"ImagePullJob"},
		},
		"both": {
			why:    "each kind has a line",
			has:    "ImagePullJob ImageListPullJob",
			warned: []string{"ImageListPullJob", "ImagePullJob"},
		},
		"gate": {
			why:    "they are reconciled",
			args:   []string{"--feature-gates=ImagePullJobGate=true"},
			has:    "ImagePullJob",
			silent: true,
		},
		"no daemon": {
			why:    "the gate is not enough",
			args:   []string{"--feature-gates=KruiseDaemon=false,ImagePullJobGate=true"},
			has:    "ImagePullJob",
			warned: []string{"ImagePullJob"},
		},
		"left out": {
			why:    "the command line says so",
			args:   []string{"--controllers=*,-imagepulljob,-imagelistpulljob"},
			has:    "ImagePullJob",
			silent: true,
		},
		"not installed": {why: "no job can exist", err: &meta.NoKindMatchError{}},
		"no answer":     {why: "the start does not depend on it", err: errors.New("no answer")},
		"one namespace": {
			why:    "the others are not for this manager",
			args:   []string{"--namespace=shop"},
			has:    "ImagePullJob",
			warned: []string{"ImagePullJob"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := optionsOf(t, c.args...)
			var lists, warned []string
			reader := interceptor.NewClient(nil, interceptor.Funcs{
				List: func(
					_ context.Context, _ runtimeclient.WithWatch, into runtimeclient.ObjectList, opts ...runtimeclient.ListOption,
				) error {
					var lo runtimeclient.ListOptions
					lo.ApplyOptions(opts)
					page := into.(*metav1.PartialObjectMetadataList)
					kind := strings.TrimSuffix(page.Kind, "List")
					lists = append(lists, kind)
					if lo.Limit != 1 || lo.Namespace != o.Cache.Namespace {
						t.Errorf("limit %d in %q", lo.Limit, lo.Namespace)
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
			var want []string
			if !c.silent {
				want = []string{"ImageListPullJob", "ImagePullJob"}
			}
			if diff := cmp.Diff([][]string{want, c.warned}, [][]string{lists, warned}); diff != "" {
				t.Errorf("%s: requests and warnings (-want +got):\n%s", c.why, diff)
			}
			if len(events.Events) != len(c.warned) {
				t.Errorf("%d events", len(events.Events))
			}
		})
	}
}
