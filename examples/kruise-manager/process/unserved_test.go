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
		"no job":        {"nothing is lost", nil, "", nil, []string{"ImageListPullJobList limit 1", "ImagePullJobList limit 1"}, nil},
		"a job":         {"the chart of the reference sets the gate", nil, "ImagePullJob", nil, []string{"ImageListPullJobList limit 1", "ImagePullJobList limit 1"}, []string{"ImagePullJob"}},
		"both":          {"each kind has a line", nil, "ImagePullJob ImageListPullJob", nil, []string{"ImageListPullJobList limit 1", "ImagePullJobList limit 1"}, []string{"ImageListPullJob", "ImagePullJob"}},
		"gate":          {"they are reconciled", []string{"--feature-gates=ImagePullJobGate=true"}, "ImagePullJob", nil, nil, nil},
		"no daemon":     {"the gate is not enough", []string{"--feature-gates=KruiseDaemon=false,ImagePullJobGate=true"}, "ImagePullJob", nil, []string{"ImageListPullJobList limit 1", "ImagePullJobList limit 1"}, []string{"ImagePullJob"}},
		"left out":      {"the command line says so", []string{"--controllers=*,-imagepulljob,-imagelistpulljob"}, "ImagePullJob", nil, nil, nil},
		"not installed": {"no job can exist", nil, "", &meta.NoKindMatchError{}, []string{"ImageListPullJobList limit 1", "ImagePullJobList limit 1"}, nil},
		"no answer":     {"the start does not depend on it", nil, "", errors.New("no answer"), []string{"ImageListPullJobList limit 1", "ImagePullJobList limit 1"}, nil},
		"one namespace": {"the others are not for this manager", []string{"--namespace=shop"}, "ImagePullJob", nil, []string{"ImageListPullJobList limit 1 in shop", "ImagePullJobList limit 1 in shop"}, []string{"ImagePullJob"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := options.Parse(c.args, func(string) string { return "" })
			if err != nil {
				t.Fatal(err)
			}
			var lists, warned []string
			reader := interceptor.NewClient(nil, interceptor.Funcs{
				List: func(_ context.Context, _ runtimeclient.WithWatch, into runtimeclient.ObjectList, opts ...runtimeclient.ListOption) error {
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
